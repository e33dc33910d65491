//! The nearest of some known names.

/// The candidate that was most likely meant: within two edits (a swap of neighbours is one), and
/// at most a third of the name; the first of equals. None for a name that is itself a candidate.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = name.chars().count().div_ceil(3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .filter_map(|candidate| {
            let distance = distance(&normal(name), &normal(candidate));
            (distance <= bound).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Case and the kind of joint do not count: `armOrder` and `arm-order` mean `arm_order`.
fn normal(name: &str) -> Vec<char> {
    name.chars()
        .take(64)
        .filter(|letter| !matches!(letter, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Edits from one name to another: insertion, removal, replacement, swap of neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        let keys = ["requests", "load", "cells", "closed-32", "arm_order"];
        assert_eq!(nearest("request", keys), Some("requests"));
        assert_eq!(nearest("laod", keys), Some("load"));
        assert_eq!(nearest("closed32", keys), Some("closed-32"));
        assert_eq!(nearest("armOrder", keys), Some("arm_order"));
        assert_eq!(nearest("warmup", keys), None);
        assert_eq!(nearest("x", keys), None);
    }
}
