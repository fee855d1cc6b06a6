/** Two calls where the second needs what the first returned. */
export interface Chain {
  readonly first: string;
  readonly second: string;
  /** The parameter of the second tool, and the result of the first that fills it. */
  readonly fills: string;
  readonly from: string;
  readonly requests: readonly string[];
}

export const chains: readonly Chain[] = [
  {
    first: "find_contact",
    second: "send_email",
    fills: "to",
    from: "email",
    requests: [
      'Send {name} an email with the subject "{subject}" and the text "{body}".',
      "Find {name} and email them: subject {subject}, body {body}.",
      'Write an email to {name} about "{subject}" that says "{body}".',
    ],
  },
  {
    first: "get_user",
    second: "get_weather",
    fills: "city",
    from: "city",
    requests: [
      "How is the weather where user {user_id} lives?",
      "Look up user {user_id} and tell me the weather there.",
      "What is the weather in the city of user {user_id}?",
    ],
  },
  {
    first: "get_user",
    second: "find_contact",
    fills: "name",
    from: "name",
    requests: [
      "What is the email address of user {user_id}?",
      "Find out who user {user_id} is and get their email.",
      "I need the email of the user with the id {user_id}.",
    ],
  },
  {
    first: "track_package",
    second: "get_time",
    fills: "city",
    from: "location",
    requests: [
      "What time is it where package {tracking_number} is?",
      "Track {tracking_number} and tell me the local time there.",
      "Find package {tracking_number} and give me the time in that city.",
    ],
  },
  {
    first: "search_products",
    second: "add_note",
    fills: "text",
    from: "name",
    requests: [
      "Find a {query} for at most {max_price} and save its name as a note.",
      "Search for {query} under {max_price} and note down what you find.",
      "Look for a {query} below {max_price}, then save the name in a note.",
    ],
  },
  {
    first: "get_user",
    second: "get_time",
    fills: "city",
    from: "city",
    requests: [
      "What time is it for user {user_id}?",
      "Look up user {user_id} and tell me their local time.",
      "Give me the local time of user {user_id}.",
    ],
  },
];
