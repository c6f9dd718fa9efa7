//! The failures of commands, and their exit codes.

use std::error::Error;
use std::process::ExitCode;

use anabranch_plan::{Problem, Problems};
use anabranch_plan_inspect::capture;

use crate::out;

/// The failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong, or requests help.
    Usage(clap::Error),
    /// The command line is well-formed, but its options make no sense together.
    Wrong(String),
    /// An input has errors.
    Refused(Problems),
    /// Any other failure.
    Failed(Box<dyn Error>),
    /// The command has already reported everything.
    Reported,
    /// The work was done, but acknowledged data was lost. The log has the details.
    Lost,
    /// The reader of our output has closed it.
    OutputClosed,
    /// The user pressed Ctrl-C, and was informed about what is left behind.
    Interrupted,
}

impl Failure {
    /// A failure with a message.
    pub(crate) fn of(what: impl Into<String>) -> Failure {
        Failure::Failed(what.into().into())
    }

    /// Reports the failure on stderr, and returns its exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Failure::Usage(error) => {
                // If even this cannot be written, nothing else can be done.
                let _ = error.print();
                ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
            }
            Failure::Wrong(what) => {
                out::note(&format!("error: {what}"));
                ExitCode::from(2)
            }
            Failure::Refused(problems) => {
                out::problems(&problems);
                ExitCode::FAILURE
            }
            Failure::Failed(error) => {
                out::note(&format!("error: {error}"));
                let mut told = error.to_string();
                let mut next = error.source();
                while let Some(cause) = next {
                    let text = cause.to_string();
                    // Some error messages include their cause.
                    if !told.contains(&text) {
                        out::note(&format!("  because: {text}"));
                        told.push_str(&text);
                    }
                    next = cause.source();
                }
                ExitCode::FAILURE
            }
            Failure::Reported => ExitCode::FAILURE,
            Failure::Lost => ExitCode::from(3),
            Failure::OutputClosed => ExitCode::SUCCESS,
            Failure::Interrupted => ExitCode::from(130),
        }
    }
}

impl From<anabranch_plan::Error> for Failure {
    fn from(error: anabranch_plan::Error) -> Failure {
        match error {
            anabranch_plan::Error::Plan(problems) => Failure::Refused(problems),
            error => Failure::Failed(Box::new(error)),
        }
    }
}

impl From<capture::Error> for Failure {
    fn from(error: capture::Error) -> Failure {
        Failure::Failed(Box::new(error))
    }
}

impl From<anabranch_recipe::Error> for Failure {
    fn from(error: anabranch_recipe::Error) -> Failure {
        Failure::Failed(Box::new(error))
    }
}

impl From<anabranch_dataset::Error> for Failure {
    fn from(error: anabranch_dataset::Error) -> Failure {
        match error {
            anabranch_dataset::Error::Config(problems) => Failure::Refused(problems),
            error => Failure::Failed(Box::new(error)),
        }
    }
}

impl From<anabranch_dataset::output::FileError> for Failure {
    fn from(error: anabranch_dataset::output::FileError) -> Failure {
        Failure::Failed(Box::new(error))
    }
}

impl From<anabranch_content::Error> for Failure {
    fn from(error: anabranch_content::Error) -> Failure {
        Failure::Failed(Box::new(error))
    }
}

impl From<anabranch_server::ClientError> for Failure {
    fn from(error: anabranch_server::ClientError) -> Failure {
        Failure::Failed(Box::new(error))
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::Refused(problem.into())
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure::Refused(problems)
    }
}
