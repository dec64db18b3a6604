//! `config-network`, as far as it concerns the asking of pods. It is read once,
//! at start.

use super::ConfigFault;
use super::Data;
use super::map::read;
use crate::knative::text::boolean;
use policy::mesh::MeshMode;

/// How pods can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshConfig {
    /// `mesh-compatibility-mode`, in any case.
    pub mode: MeshMode,
    /// `enable-mesh-pod-addressability`: the mesh routes to single pods.
    pub pod_addressability: bool,
}

impl MeshConfig {
    /// From the map's text. A mode that is not known is `auto`.
    ///
    /// # Errors
    /// When `enable-mesh-pod-addressability` does not read.
    pub fn parse(data: &Data) -> Result<MeshConfig, ConfigFault> {
        let mode = data.get("mesh-compatibility-mode").map_or(MeshMode::Auto, |mode| MeshMode::from_setting(mode));
        let pod_addressability = read(data, "enable-mesh-pod-addressability", false, boolean)?;
        Ok(MeshConfig { mode, pod_addressability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_read_in_any_case() {
        let parse = |pairs: &[(&str, &str)]| {
            MeshConfig::parse(&pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
        };
        assert_eq!(parse(&[]), Ok(MeshConfig::default()));
        let config = parse(&[("mesh-compatibility-mode", "Disabled"), ("enable-mesh-pod-addressability", "true")]);
        assert_eq!(config, Ok(MeshConfig { mode: MeshMode::Disabled, pod_addressability: true }));
        assert!(parse(&[("enable-mesh-pod-addressability", "maybe")]).is_err());
    }
}
