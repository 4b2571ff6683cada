"""The journal and its consumers: outgoing webhooks, Slack messages, and the event feed of the API.

- `journal_consumers`: reads the journal for one consumer from its stored cursor, delivers, and moves the cursor; a
  consumer that fails is retried with backoff and marked as stalled
- `dispatch`: the consumer of one webhook, the set of active webhooks, and the event feed
- `events`: builds the payload of an event from a journal entry
- `delivery`: signs and sends one delivery, as JSON or as a Slack message, and records each attempt
- `webhooks`: creating, changing, testing and deleting webhooks

Delivery is at least once and in order per webhook. Receivers deduplicate by the event id.
"""
