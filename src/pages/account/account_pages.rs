//! All pages of accounts.

use super::views::{
    AccountView, IssuedKeyView, LinkForm, MessagePage, OwnedApplicationView, SignInForm, SignedIn,
};
use super::{AccountSite, application, frame, keys, overview, sign_in};

impl AccountSite {
    /// The form for an e-mail address, for signing up and signing in.
    pub fn sign_in(&self, form: &SignInForm<'_>) -> String {
        sign_in::form(self, form)
    }

    /// The page after that form.
    pub fn link_sent(&self, email: &str) -> String {
        sign_in::link_sent(self, email)
    }

    /// The page of a link.
    pub fn link(&self, form: &LinkForm<'_>) -> String {
        sign_in::link(self, form)
    }

    /// The page of an account.
    pub fn account(&self, view: &AccountView<'_>) -> String {
        overview::page(self, view)
    }

    /// The page of an application.
    pub fn application(&self, view: &OwnedApplicationView<'_>) -> String {
        application::page(self, view)
    }

    /// The page with a new key.
    pub fn issued_key(&self, view: &IssuedKeyView<'_>) -> String {
        keys::issued(self, view)
    }

    /// The page that asks to sign in again before a step that cannot be undone.
    pub fn sign_in_again(&self, signed_in: &SignedIn<'_>) -> String {
        sign_in::again(self, signed_in)
    }

    /// A message.
    pub fn message(&self, page: &MessagePage<'_>) -> String {
        frame::message(self, page)
    }
}
