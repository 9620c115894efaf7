use super::*;

#[test]
fn every_format_has_a_name_of_its_own_and_says_how_its_log_is_made() {
    let mut names = Vec::new();
    for (name, aliases, about) in formats() {
        assert!(!about.is_empty());
        names.push(name);
        names.extend(aliases);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
