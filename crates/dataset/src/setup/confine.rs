//! Seeds of configurations whose authors may read some folders only.

use std::path::{Component, Path, PathBuf};

use anabranch_text::quote;

use crate::config::{SeedConfig, SeedSource};

/// The seed with its path resolved inside one of these folders. The error for a path elsewhere does not reveal whether
/// the file exists.
pub(super) fn confine(config: &SeedConfig, folders: &[PathBuf]) -> Result<SeedConfig, String> {
    let mut config = config.clone();
    let (SeedSource::Local { path }
    | SeedSource::Directory { path, .. }
    | SeedSource::FileContents { path, .. }) = &mut config.source;
    let refused = || {
        let path = quote(&path.to_string_lossy());
        format!("the seed {path} is not in a folder that seeds may be read from")
    };
    if path.components().any(|part| matches!(part, Component::ParentDir)) {
        return Err(refused());
    }
    let first = folders.first().ok_or_else(refused)?;
    let whole = first.join(&*path);
    // A pattern names no file, so the folder in front of it is looked at.
    let has_pattern = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    let plain: PathBuf = whole.components().take_while(|part| !has_pattern(part)).collect();
    let rest = whole.strip_prefix(&plain).map_err(|_| refused())?;
    let found = plain.canonicalize().map_err(|_| refused())?;
    let is_inside = |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| found.starts_with(folder));
    if !folders.iter().any(is_inside) {
        return Err(refused());
    }
    *path = if rest == Path::new("") { found } else { found.join(rest) };
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SeedOrder;

    #[test]
    fn only_paths_inside_are_found() {
        let home = std::env::temp_dir().join(format!("anabranch-confine-{}", std::process::id()));
        let seeds = home.join("seeds");
        std::fs::create_dir_all(&seeds).unwrap();
        std::fs::write(seeds.join("a.csv"), "x\n1\n").unwrap();
        std::fs::write(home.join("secret.csv"), "x\n1\n").unwrap();
        std::os::unix::fs::symlink(home.join("secret.csv"), seeds.join("link.csv")).unwrap();
        let check = |path: &str| {
            let source = SeedSource::Local { path: path.into() };
            let config = SeedConfig { source, order: SeedOrder::default(), selection: None };
            confine(&config, std::slice::from_ref(&seeds)).is_ok()
        };
        assert!(check("a.csv") && check("*.csv") && check(&seeds.join("a.csv").to_string_lossy()));
        for outside in ["../secret.csv", "/etc/passwd", "missing.csv", "link.csv", "/*", "x/../../secret.csv"]
        {
            assert!(!check(outside), "{outside}");
        }
        std::fs::remove_dir_all(&home).unwrap();
    }
}
