//! The HTML form of the mail with a link to sign in. Mail programs support little CSS.

use crate::pages::html::escape;

/// The HTML of the mail.
pub fn link_mail_html(service: &str, link: &str) -> String {
    let service = escape(service);
    let link = escape(link);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Sign in to {service}</title></head>\n<body>\n\
         <p>Open this link to sign in to {service}:</p>\n<p><a href=\"{link}\">{link}</a></p>\n\
         <p>Press the button on that page to sign in. The link works once and expires in 15 minutes.</p>\n\
         <p>If you did not request this email, you can ignore it. Nobody can sign in without the link.</p>\n</body></html>\n"
    )
}
