//! Whether a mesh stands between us and pods (`mesh-compatibility-mode` of
//! config-network).

/// How pods are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeshMode {
    /// Found out: pods are asked, and what stands for all of them if none can
    /// be reached.
    #[default]
    Auto,
    /// There is one: only through the service.
    Enabled,
    /// There is none: pods, whatever they answer.
    Disabled,
}

impl MeshMode {
    /// From the text of the setting; what it does not know means `auto`.
    pub fn from_setting(text: &str) -> MeshMode {
        text.parse().unwrap_or_default()
    }
}

impl std::str::FromStr for MeshMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<MeshMode, &'static str> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(MeshMode::Auto),
            "enabled" => Ok(MeshMode::Enabled),
            "disabled" => Ok(MeshMode::Disabled),
            _ => Err("auto, enabled or disabled"),
        }
    }
}
