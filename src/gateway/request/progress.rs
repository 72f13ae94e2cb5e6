//! The progress of a request.

use crate::{
    documents::FoundDocument,
    gateway::{
        response::reply::Reply,
        stages::{authenticate::Caller, parse::ParsedRequest, resolve::ResolvedTarget},
    },
};

/// The progress of a request after some stages.
#[derive(Debug)]
pub enum RequestProgress<S> {
    /// The request is answered.
    Done(Reply),
    /// More stages follow.
    Continues(S),
}

/// The subject of a request from an authenticated caller.
#[derive(Debug)]
pub enum Identification {
    /// The caller's own limits and usage.
    Me(Caller),
    /// A document.
    Document(Identified),
}

/// A request for a document from an authenticated caller.
#[derive(Debug)]
pub struct Identified {
    pub(crate) caller: Caller,
    pub(crate) target: ResolvedTarget,
    /// The stored document.
    pub(crate) found: Option<FoundDocument>,
}

/// A request that has to wait. It has taken no unit and no token.
#[derive(Debug)]
pub struct Waiting<'r> {
    pub(crate) parsed: ParsedRequest<'r>,
    pub(crate) found: WaitingFor,
}

/// The information about a request that has to wait.
#[derive(Debug)]
pub enum WaitingFor {
    /// Nothing is known yet, because key changes have to be read first.
    Keys,
    /// The caller and the subject are known.
    Subject(Identification),
}

impl<'r> Waiting<'r> {
    /// Creates the state of a document request that has to wait.
    pub(crate) fn for_document(
        parsed: ParsedRequest<'r>,
        identified: Identified,
    ) -> RequestProgress<Box<Self>> {
        let subject = Identification::Document(identified);
        Self::continues(parsed, WaitingFor::Subject(subject))
    }

    /// Creates the progress of a request that has to wait. It is boxed to keep the progress of a hit small.
    pub(crate) fn continues(
        parsed: ParsedRequest<'r>,
        found: WaitingFor,
    ) -> RequestProgress<Box<Self>> {
        RequestProgress::Continues(Box::new(Self { parsed, found }))
    }
}

impl Identified {
    /// The stored document, if the request does not have to wait for another one.
    pub(crate) fn ready(&self) -> Option<&FoundDocument> {
        let found = self.found.as_ref()?;
        (found.is_fresh() && !self.target.names_a_key).then_some(found)
    }

    /// Whether the request can be answered without the backend.
    pub(crate) fn is_servable(&self) -> bool {
        self.found.as_ref().is_some_and(FoundDocument::is_servable)
    }
}
