//! Names that were meant, perhaps.

/// Names in a hint.
const MOST: usize = 5;
/// Longer ones are not compared.
const LENGTH_MAX: usize = 128;

/// Those of `names` that are near to `asked`, the nearest first.
pub(crate) fn near<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    if asked.len() > LENGTH_MAX {
        return Vec::new();
    }
    let asked = asked.to_lowercase();
    let far = (asked.chars().count() / 3).max(2);
    let distance = |name: &str| match asked.len() > 2 && (name.contains(&asked) || asked.contains(name)) {
        true => 1,
        false => edits(&asked, name),
    };
    let mut found: Vec<(usize, &str)> =
        names.filter(|name| name.len() <= LENGTH_MAX).map(|name| (distance(name), name)).collect();
    found.retain(|(distance, name)| *distance <= far && !name.is_empty());
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect()
}

/// Letters to add, leave out or change.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, of_a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, of_b) in b.iter().enumerate() {
            let change = diagonal + usize::from(of_a != *of_b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_slip_or_a_part_are_near() {
        let names = ["shop", "shop-00001", "blog", "checkout", "shop"];
        let of = |asked: &str| near(asked, names.into_iter());
        assert_eq!(of("shpo"), ["shop"]);
        assert_eq!(of("Shop-0001"), ["shop", "shop-00001"]);
        assert_eq!(of("check"), ["checkout"]);
        assert!(of("nothing-of-that-kind").is_empty() && of(&"x".repeat(500)).is_empty() && of("").is_empty());
        assert_eq!((edits("", "abc"), edits("kitten", "sitting")), (3, 3));
    }
}
