//! The table for a locale, or the nearest one.

use std::sync::OnceLock;

use super::table::Table;
use crate::error::Error;

/// The first locale of a language is the one for its other countries.
const FILES: [(&str, &str); 21] = [
    ("en_US", include_str!("../../data/en_US.txt")),
    ("en_GB", include_str!("../../data/en_GB.txt")),
    ("en_CA", include_str!("../../data/en_CA.txt")),
    ("en_AU", include_str!("../../data/en_AU.txt")),
    ("en_IN", include_str!("../../data/en_IN.txt")),
    ("en_SG", include_str!("../../data/en_SG.txt")),
    ("hi_Deva_IN", include_str!("../../data/hi_Deva_IN.txt")),
    ("hi_Latn_IN", include_str!("../../data/hi_Latn_IN.txt")),
    ("fr_FR", include_str!("../../data/fr_FR.txt")),
    ("de_DE", include_str!("../../data/de_DE.txt")),
    ("es_ES", include_str!("../../data/es_ES.txt")),
    ("es_MX", include_str!("../../data/es_MX.txt")),
    ("it_IT", include_str!("../../data/it_IT.txt")),
    ("pt_BR", include_str!("../../data/pt_BR.txt")),
    ("pt_PT", include_str!("../../data/pt_PT.txt")),
    ("nl_NL", include_str!("../../data/nl_NL.txt")),
    ("sv_SE", include_str!("../../data/sv_SE.txt")),
    ("pl_PL", include_str!("../../data/pl_PL.txt")),
    ("ja_JP", include_str!("../../data/ja_JP.txt")),
    ("ko_KR", include_str!("../../data/ko_KR.txt")),
    ("zh_CN", include_str!("../../data/zh_CN.txt")),
];

/// Languages without a table, and the table that is nearest.
const NEAR: [(&str, &str); 20] = [
    ("da", "sv_SE"),
    ("no", "sv_SE"),
    ("nb", "sv_SE"),
    ("nn", "sv_SE"),
    ("cs", "pl_PL"),
    ("sk", "pl_PL"),
    ("ca", "es_ES"),
    ("gl", "es_ES"),
    ("eu", "es_ES"),
    ("af", "nl_NL"),
    ("lb", "de_DE"),
    ("bn", "en_IN"),
    ("gu", "en_IN"),
    ("mr", "hi_Deva_IN"),
    ("ne", "hi_Deva_IN"),
    ("or", "en_IN"),
    ("ta", "en_IN"),
    ("te", "en_IN"),
    ("fil", "en_US"),
    ("ga", "en_GB"),
];

static TABLES: [OnceLock<Table>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];

/// The table of a locale; a warning says if it is that of another.
pub(crate) fn resolve(locale: &str, warnings: &mut Vec<String>) -> Result<&'static Table, Error> {
    let normal = locale.replace('-', "_");
    let language = normal.split('_').next().unwrap_or_default();
    let sound = (2..=3).contains(&language.len())
        && locale.len() <= 20
        && normal
            .split('_')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if !sound {
        let shown: String = locale.chars().take(40).collect();
        return Err(Error::param("locale", format!("expected a locale such as en_US, found `{shown}`")));
    }
    if let Some(index) = position(&normal) {
        return Ok(table(index));
    }
    let language = language.to_ascii_lowercase();
    let prefix = format!("{language}_");
    let american = language == "es" && normal.len() > 2;
    let near = if american { Some("es_MX") } else { None }
        .or_else(|| FILES.iter().map(|(name, _)| *name).find(|name| name.starts_with(&prefix)))
        .or_else(|| NEAR.iter().find(|(other, _)| *other == language).map(|(_, name)| *name))
        .unwrap_or("en_US");
    warnings.push(format!("`locale`: no built-in table of persons for {locale}; the one for {near} is used"));
    Ok(table(position(near).unwrap_or(0)))
}

fn position(locale: &str) -> Option<usize> {
    FILES.iter().position(|(name, _)| name.eq_ignore_ascii_case(locale))
}

fn table(index: usize) -> &'static Table {
    TABLES[index].get_or_init(|| {
        // Files include earlier ones only, so that this ends.
        Table::parse(FILES[index].1, |other| {
            position(other)
                .filter(|included| *included < index)
                .map_or_else(Table::default, |at| table(at).clone())
        })
    })
}
