//! The progress of a request.

use crate::documents::FoundDocument;
use crate::gateway::response::reply::Reply;
use crate::gateway::stages::authenticate::Caller;
use crate::gateway::stages::parse::ParsedRequest;
use crate::gateway::stages::resolve::ResolvedTarget;

/// The progress of a request after some stages.
#[derive(Debug)]
pub(crate) enum RequestProgress<S> {
    /// It is answered.
    Done(Reply),
    /// Other stages follow.
    Continues(S),
}

/// The subject of a request of a known caller.
#[derive(Debug)]
pub(crate) enum Identification {
    /// Its own limits and usage.
    Me(Caller),
    /// A document.
    Document(Identified),
}

/// A request of a known caller for a document.
#[derive(Debug)]
pub(crate) struct Identified {
    pub(crate) caller: Caller,
    pub(crate) target: ResolvedTarget,
    /// The stored document.
    pub(crate) found: Option<FoundDocument>,
}

/// A request that has to wait. It has taken no unit and no token.
#[derive(Debug)]
pub(crate) struct Waiting<'r> {
    pub(crate) parsed: ParsedRequest<'r>,
    pub(crate) found: WaitingFor,
}

/// The known part of a request that has to wait.
#[derive(Debug)]
pub(crate) enum WaitingFor {
    /// Nothing is known: changes of keys have to be read first.
    Keys,
    /// Its caller and its subject.
    Subject(Identification),
}

impl<'r> Waiting<'r> {
    /// A request for a document that has to wait.
    pub(crate) fn for_document(
        parsed: ParsedRequest<'r>,
        identified: Identified,
    ) -> RequestProgress<Box<Self>> {
        let subject = Identification::Document(identified);
        Self::continues(parsed, WaitingFor::Subject(subject))
    }

    /// Boxed, so that the progress of a hit is small.
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

    /// Whether it can be answered without the backend.
    pub(crate) fn is_servable(&self) -> bool {
        self.found.as_ref().is_some_and(FoundDocument::is_servable)
    }
}
