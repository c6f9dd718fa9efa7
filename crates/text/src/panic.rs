//! The message of a panic.

use std::any::Any;

/// The message of a panic, from the payload that `catch_unwind` returns.
///
/// ```
/// let caught = std::panic::catch_unwind(|| panic!("no row {}", 7)).unwrap_err();
/// assert_eq!(anabranch_text::panic_message(&*caught), "no row 7");
/// ```
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no message)").to_owned()
}
