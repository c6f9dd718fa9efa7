//! `--log`: the level and format of log lines on stderr.

use std::str::FromStr;
use std::{fmt, io};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{fmt as lines, registry};

/// The value of `--log`: a format, a level, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogOption {
    format: Format,
    /// `None` for the default of the command.
    level: Option<LevelFilter>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Format {
    #[default]
    Text,
    Json,
}

impl LogOption {
    /// The option with a level.
    pub(crate) fn or_level(self, level: LevelFilter) -> LogOption {
        LogOption { level: self.level.or(Some(level)), ..self }
    }
}

impl fmt::Display for LogOption {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.format {
            Format::Text => "text",
            Format::Json => "json",
        })?;
        self.level.map_or(Ok(()), |level| write!(out, ",{level}"))
    }
}

impl FromStr for LogOption {
    type Err = String;

    fn from_str(text: &str) -> Result<LogOption, String> {
        let (mut format, mut level) = (None, None);
        for word in text.split(',') {
            let is_first = match word {
                "text" => format.replace(Format::Text).is_none(),
                "json" => format.replace(Format::Json).is_none(),
                "off" => level.replace(LevelFilter::OFF).is_none(),
                "error" => level.replace(LevelFilter::ERROR).is_none(),
                "warn" => level.replace(LevelFilter::WARN).is_none(),
                "info" => level.replace(LevelFilter::INFO).is_none(),
                "debug" => level.replace(LevelFilter::DEBUG).is_none(),
                _ => false,
            };
            if !is_first {
                return Err(CHOICES.to_owned());
            }
        }
        Ok(LogOption { format: format.unwrap_or(Format::Text), level })
    }
}

const CHOICES: &str = "expected text or json, or a level (off, error, warn, info, debug), or both with a comma \
    in between, as in json,debug";

impl LogOption {
    /// Writes log lines to stderr from now on, without those of other libraries.
    pub(crate) fn start(self) {
        let level = self.level.unwrap_or(LevelFilter::INFO);
        let ours = Targets::new().with_target("anabranch", level);
        let lines = lines::layer().with_writer(io::stderr).with_ansi(false).log_internal_errors(false);
        let registry = registry().with(ours);
        // This fails if the process already has a subscriber, which then stays.
        let _ = match self.format {
            Format::Text => tracing::subscriber::set_global_default(registry.with(lines)),
            Format::Json => {
                let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
                tracing::subscriber::set_global_default(registry.with(lines))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_and_a_level_in_any_order() {
        let check = |text: &str, format, level| {
            assert_eq!(text.parse(), Ok(LogOption { format, level }), "{text}");
        };
        check("text", Format::Text, None);
        check("json", Format::Json, None);
        check("debug", Format::Text, Some(LevelFilter::DEBUG));
        check("off", Format::Text, Some(LevelFilter::OFF));
        check("json,debug", Format::Json, Some(LevelFilter::DEBUG));
        check("error,json", Format::Json, Some(LevelFilter::ERROR));
        for text in ["text", "json,debug", "text,off"] {
            assert_eq!(text.parse::<LogOption>().unwrap().to_string(), text);
        }
        for wrong in ["", "xml", "json,", "json,text", "info,debug", "JSON", "json debug", "trace"] {
            assert_eq!(wrong.parse::<LogOption>(), Err(CHOICES.to_owned()), "{wrong}");
        }
    }
}
