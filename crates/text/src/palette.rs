//! The colours and fonts of every picture and page: timelines, explanations, reports and the console.
//!
//! A style names a colour as `var(--blue)` and a font as `var(--sans)`. Pages define them once with [`css`]. Pictures
//! are also opened by programs that know no variables, so [`filled`] puts the colours in their places.

/// A colour for light and for dark pages.
struct Colour {
    name: &'static str,
    light: &'static str,
    dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

const COLOURS: [Colour; 24] = [
    // Surfaces: the page, panels on it, and the line under the pointer.
    colour("paper", "#ffffff", "#0d1117"),
    colour("ground", "#f6f8fa", "#151b23"),
    colour("raised", "#eef1f4", "#1c232c"),
    // Text.
    colour("ink", "#1f2328", "#e6edf3"),
    colour("muted", "#57606a", "#9aa4af"),
    // Lines: around panels, between rows, around controls.
    colour("rule", "#d1d9e0", "#343b44"),
    colour("soft", "#e8ecf0", "#222932"),
    colour("control", "#818b98", "#6b7580"),
    // Text and fills with a meaning: blue waits or goes on, green computes or is complete, amber is degraded, red
    // failed, violet is limited, orange is tried again.
    colour("blue", "#1f6ab8", "#6cb0f7"),
    colour("green", "#187a56", "#4cc38a"),
    colour("amber", "#8a5a00", "#e3b341"),
    colour("red", "#bd2c1f", "#ff8077"),
    colour("violet", "#7d45b0", "#c095ea"),
    colour("orange", "#a8430f", "#f0945a"),
    // Grounds for text of the same colour, and for ink.
    colour("blue-soft", "#e6f0fb", "#12263d"),
    colour("green-soft", "#e2f4ec", "#0f2a20"),
    colour("amber-soft", "#fbf1d9", "#2c2411"),
    colour("red-soft", "#fdeae7", "#371917"),
    colour("violet-soft", "#f2eafa", "#271d35"),
    // Fills only.
    colour("gold", "#b97f00", "#d9a520"),
    colour("rest", "#7f8994", "#737d88"),
    colour("slot", "#66707b", "#8b95a0"),
    colour("earth", "#80695a", "#a8927f"),
    // Text on a fill.
    colour("on-fill", "#ffffff", "#0d1117"),
];

const FONTS: [(&str, &str); 2] = [
    ("sans", "system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif"),
    ("mono", "ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace"),
];

/// The definitions of a page. It is light or dark like the user's system, unless `data-theme` of its root is `light` or
/// `dark`.
pub fn css() -> String {
    let colours = |value: fn(&Colour) -> &str| -> String {
        COLOURS.iter().map(|colour| format!("--{}:{};", colour.name, value(colour))).collect()
    };
    let fonts: String = FONTS.iter().map(|(name, font)| format!("--{name}:{font};")).collect();
    let dark = colours(|colour| colour.dark);
    format!(
        ":root{{color-scheme:light dark;{fonts}{}}}\n\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{color-scheme:dark;{dark}}}\n:root[data-theme=light]{{color-scheme:light}}\n",
        colours(|colour| colour.light),
    )
}

/// The rules of a picture with all variables replaced: for light pages, and once more for dark ones.
pub fn filled(rules: &str) -> String {
    let replaced = |value: fn(&Colour) -> &str| {
        let colours = COLOURS.iter().map(|colour| (colour.name, value(colour)));
        colours.chain(FONTS).fold(rules.trim().to_owned(), |rules, (name, value)| {
            rules.replace(&format!("var(--{name})"), value)
        })
    };
    let (light, dark) = (replaced(|colour| colour.light), replaced(|colour| colour.dark));
    debug_assert!(!light.contains("var("), "every variable is a colour or a font of the palette: {light}");
    format!("{light}\n@media (prefers-color-scheme:dark){{\n{dark}\n}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let part = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    fn check(front: &str, ground: &str, least: f64) {
        let find = |name: &str| COLOURS.iter().find(|colour| colour.name == name).unwrap();
        let (front, ground) = (find(front), find(ground));
        for (one, other, mode) in [(front.light, ground.light, "light"), (front.dark, ground.dark, "dark")] {
            let found = contrast(one, other);
            assert!(found >= least, "{} on {} ({mode}): {found:.2} < {least}", front.name, ground.name);
        }
    }

    #[test]
    fn text_and_signs_have_the_contrast_of_wcag_aa() {
        const MEANINGS: [&str; 5] = ["blue", "green", "amber", "red", "violet"];
        for ground in ["paper", "ground", "raised"] {
            for text in ["ink", "muted", "orange"].into_iter().chain(MEANINGS) {
                check(text, ground, 4.5);
            }
            check("control", ground, 3.0);
        }
        for fill in ["gold", "rest", "slot", "earth"] {
            check(fill, "paper", 3.0);
            check(fill, "ground", 3.0);
        }
        for colour in MEANINGS {
            for text in ["ink", "muted", colour] {
                check(text, &format!("{colour}-soft"), 4.5);
            }
            check("on-fill", colour, 4.5);
        }
        for ground in ["blue-soft", "green-soft", "amber-soft", "violet-soft"] {
            check("orange", ground, 4.5);
        }
        check("on-fill", "orange", 4.5);
        check("on-fill", "slot", 4.5);
    }

    #[test]
    fn pictures_have_no_variables() {
        let rules = filled("text{fill:var(--ink);font:11px var(--sans)}");
        assert!(rules.starts_with("text{fill:#1f2328;font:11px system-ui,"), "{rules}");
        assert!(rules.contains("@media (prefers-color-scheme:dark){\ntext{fill:#e6edf3;"), "{rules}");
        assert!(!rules.contains("var("), "{rules}");
    }

    #[test]
    fn pages_follow_the_system_unless_told_otherwise() {
        let css = css();
        let dark = "--paper:#0d1117;";
        assert_eq!(css.matches(dark).count(), 2, "{css}");
        assert_eq!(css.matches("--paper:#ffffff;").count(), 1, "{css}");
    }
}
