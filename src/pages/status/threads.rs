//! Groups messages by incident, and renders their text as HTML.

use crate::pages::html::escape;
use scoregate_store::{IncidentState, StatusMessage};

/// The messages about one incident.
#[derive(Debug)]
pub struct IncidentThread<'m> {
    pub number: u64,
    pub title: &'m str,
    pub state: IncidentState,
    /// The messages, newest first. Never empty.
    pub messages: Vec<&'m StatusMessage>,
}

impl IncidentThread<'_> {
    pub fn is_open(&self) -> bool {
        self.state != IncidentState::Resolved
    }
}

/// Groups messages, which are listed newest first, by incident. The incident with the newest message comes first.
pub fn threads(messages: &[StatusMessage]) -> Vec<IncidentThread<'_>> {
    let mut threads: Vec<IncidentThread<'_>> = Vec::new();
    for message in messages {
        match threads
            .iter_mut()
            .find(|thread| thread.number == message.incident)
        {
            Some(thread) => thread.messages.push(message),
            None => threads.push(IncidentThread {
                number: message.incident,
                title: &message.title,
                state: message.state,
                messages: vec![message],
            }),
        }
    }
    threads
}

/// The name of a state on the page.
pub const fn name(state: IncidentState) -> &'static str {
    match state {
        IncidentState::Investigating => "Investigating",
        IncidentState::Identified => "Identified",
        IncidentState::Monitoring => "Monitoring",
        IncidentState::Resolved => "Resolved",
    }
}

/// The text of a message as HTML, with a paragraph for each block of lines.
pub fn paragraphs(message: &str) -> String {
    let blocks = message
        .split("\n\n")
        .map(str::trim)
        .filter(|block| !block.is_empty());
    blocks
        .map(|block| {
            let lines: Vec<String> = block.lines().map(escape).collect();
            format!("<p dir=\"auto\">{}</p>\n", lines.join("<br>\n"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::clock::Wall;

    fn message(id: u64, incident: u64, state: IncidentState) -> StatusMessage {
        let title = format!("Incident {incident}");
        let message = format!("Message {id}");
        StatusMessage {
            id,
            incident,
            at: Wall::from_seconds(id),
            state,
            title,
            message,
        }
    }

    #[test]
    fn messages_are_grouped_by_incident_and_the_newest_one_states_whether_it_is_open() {
        let messages = [
            message(4, 1, IncidentState::Resolved),
            message(3, 2, IncidentState::Identified),
            message(2, 2, IncidentState::Investigating),
            message(1, 1, IncidentState::Investigating),
        ];
        let threads = threads(&messages);
        let seen: Vec<_> = threads
            .iter()
            .map(|thread| {
                let ids: Vec<u64> = thread.messages.iter().map(|message| message.id).collect();
                (thread.number, thread.is_open(), ids)
            })
            .collect();
        assert_eq!(seen, [(1, false, vec![4, 1]), (2, true, vec![3, 2])]);
    }

    #[test]
    fn line_breaks_of_a_message_are_kept_and_its_markup_is_text() {
        let html = paragraphs("One\nTwo <b>\n\n\n\nThree");
        assert_eq!(
            html,
            "<p dir=\"auto\">One<br>\nTwo &lt;b&gt;</p>\n<p dir=\"auto\">Three</p>\n"
        );
    }
}
