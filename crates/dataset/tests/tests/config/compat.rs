//! DataDesigner's own files.

use std::path::Path;

use anabranch_dataset::Config;
use anabranch_dataset::config::Setting;

use super::lines;

#[test]
fn files_of_datadesigner_load_as_they_are() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/compat/datadesigner");
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let (config, warnings) =
            Config::load(&path, &mut Setting::default()).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(lines(&warnings), "", "{}", path.display());
        assert_eq!(config.aliases_without_model(), ["model"]);
        assert_eq!(config.dependencies().order.len(), config.columns.len());
    }
}
