import { type ParameterPlan, readParameters } from "./parameters.js";

/** One tool: what it takes, how a user asks for it, what it returns and how the answer words that. */
export interface ToolPlan {
  readonly name: string;
  readonly description: string;
  readonly parameters: readonly ParameterPlan[];
  readonly requests: readonly string[];
  readonly results: readonly ParameterPlan[];
  readonly answer: string;
}

function tool(
  name: string,
  description: string,
  takes: string,
  requests: readonly string[],
  gives: string,
  answer: string,
): ToolPlan {
  return {
    name,
    description,
    parameters: readParameters(takes),
    requests,
    results: readParameters(gives),
    answer,
  };
}

export const catalog: readonly ToolPlan[] = [
  tool(
    "get_weather",
    "Get the current weather in a city",
    "city:city",
    [
      "What is the weather in {city}?",
      "How is the weather in {city} right now?",
      "Is it warm in {city}?",
      "Tell me the weather for {city}.",
    ],
    "temperature:small; condition:enum:sunny,cloudy,rainy,windy,snowy",
    "It is {condition} in {city} with {temperature} degrees.",
  ),
  tool(
    "get_forecast",
    "Get the weather forecast for a city on a date",
    "city:city; date:date",
    [
      "What will the weather be in {city} on {date}?",
      "Give me the forecast for {city} on {date}.",
      "Forecast on {date} in {city}, please.",
    ],
    "high:small; condition:enum:sunny,cloudy,rainy,windy,snowy",
    "On {date} it will be {condition} in {city} with up to {high} degrees.",
  ),
  tool(
    "send_email",
    "Send an email",
    "to:email; subject:phrase; body:phrase",
    [
      'Send an email to {to} with the subject "{subject}" and the text "{body}".',
      "Email {to}: subject {subject}, body {body}.",
      'Write to {to} about "{subject}" and say "{body}".',
    ],
    "message_id:code",
    "The email to {to} was sent. Its id is {message_id}.",
  ),
  tool(
    "create_event",
    "Create a calendar event",
    "title:phrase; date:date; time:time",
    [
      'Create an event called "{title}" on {date} at {time}.',
      "Put {title} in my calendar for {date} at {time}.",
      'Schedule "{title}" at {time} on {date}.',
    ],
    "event_id:code",
    "The event {title} is set for {date} at {time}. Its id is {event_id}.",
  ),
  tool(
    "convert_currency",
    "Convert an amount from one currency to another",
    "amount:price; from:enum:EUR,USD,GBP,JPY,CHF,TRY; to:enum:EUR,USD,GBP,JPY,CHF,TRY",
    [
      "Convert {amount} {from} to {to}.",
      "How much is {amount} {from} in {to}?",
      "What are {amount} {from} worth in {to}?",
    ],
    "result:price",
    "{amount} {from} are {result} {to}.",
  ),
  tool(
    "search_products",
    "Search the shop for products",
    "query:product; max_price:small",
    [
      "Find a {query} for at most {max_price}.",
      "Search for {query} under {max_price}.",
      "I want a {query} that costs no more than {max_price}.",
    ],
    "name:product; price:price",
    "I found the {name} for {price}.",
  ),
  tool(
    "get_stock_price",
    "Get the latest stock price of a company",
    "company:company",
    [
      "What is the stock price of {company}?",
      "How much is a share of {company}?",
      "Look up the stock of {company}.",
    ],
    "price:price; currency:enum:EUR,USD,GBP",
    "A share of {company} costs {price} {currency}.",
  ),
  tool(
    "set_timer",
    "Start a timer",
    "minutes:small; label:phrase",
    [
      "Set a timer of {minutes} minutes for {label}.",
      'Start a {minutes} minute timer named "{label}".',
      "Timer for {label}, {minutes} minutes.",
    ],
    "timer_id:code",
    "The timer {timer_id} for {label} runs for {minutes} minutes.",
  ),
  tool(
    "translate_text",
    "Translate a text into another language",
    "text:phrase; language:enum:French,German,Spanish,Turkish,Italian",
    [
      'Translate "{text}" into {language}.',
      'How do you say "{text}" in {language}?',
      'What is "{text}" in {language}?',
    ],
    "translation:phrase",
    'In {language} it is "{translation}".',
  ),
  tool(
    "book_table",
    "Book a table in a restaurant",
    "restaurant:company; people:small; date:date; time:time",
    [
      "Book a table for {people} at {restaurant} on {date} at {time}.",
      "Reserve {restaurant} for {people} people, {date}, {time}.",
      "I need a table at {restaurant} on {date} at {time} for {people}.",
    ],
    "booking_code:code",
    "Your table for {people} at {restaurant} is booked. The code is {booking_code}.",
  ),
  tool(
    "find_flights",
    "Find flights between two cities",
    "origin:city; destination:city; date:date",
    [
      "Find flights from {origin} to {destination} on {date}.",
      "I want to fly from {origin} to {destination} on {date}.",
      "Which flights go to {destination} from {origin} on {date}?",
    ],
    "flight_number:code; price:price",
    "Flight {flight_number} from {origin} to {destination} costs {price}.",
  ),
  tool(
    "get_order",
    "Look up an order by its id",
    "order_id:code",
    ["Look up order {order_id}.", "What about my order {order_id}?", "Show me the order {order_id}."],
    "status:enum:pending,shipped,delivered,cancelled; total:price",
    "Order {order_id} is {status}. The total is {total}.",
  ),
  tool(
    "cancel_order",
    "Cancel an order",
    "order_id:code; reason:phrase",
    [
      "Cancel order {order_id} because of {reason}.",
      "Please cancel {order_id}. The reason is {reason}.",
      "I want order {order_id} cancelled, reason: {reason}.",
    ],
    "refund:price",
    "Order {order_id} is cancelled. You get {refund} back.",
  ),
  tool(
    "track_package",
    "Find out where a package is",
    "tracking_number:code",
    [
      "Where is package {tracking_number}?",
      "Track {tracking_number}.",
      "Where is my parcel with the number {tracking_number}?",
    ],
    "location:city; status:enum:queued,sent,arrived",
    "Package {tracking_number} is in {location}. Its status is {status}.",
  ),
  tool(
    "create_ticket",
    "Open a support ticket",
    "title:phrase; priority:enum:low,medium,high",
    [
      'Open a {priority} priority ticket titled "{title}".',
      "Create a ticket: {title}, priority {priority}.",
      "File a ticket about {title} with {priority} priority.",
    ],
    "ticket_id:code",
    "Ticket {ticket_id} was opened with {priority} priority.",
  ),
  tool(
    "add_contact",
    "Save a new contact",
    "name:person; email:email",
    [
      "Save {name} with the address {email}.",
      "Add {name} ({email}) to my contacts.",
      "New contact: {name}, {email}.",
    ],
    "contact_id:code",
    "{name} was saved as contact {contact_id}.",
  ),
  tool(
    "get_distance",
    "Get the distance between two cities in kilometers",
    "origin:city; destination:city",
    [
      "How far is it from {origin} to {destination}?",
      "What is the distance between {origin} and {destination}?",
      "Distance from {origin} to {destination}?",
    ],
    "kilometers:integer",
    "It is {kilometers} kilometers from {origin} to {destination}.",
  ),
  tool(
    "play_song",
    "Play a song",
    "title:phrase; artist:person",
    ["Play {title} by {artist}.", 'I want to hear "{title}" by {artist}.', "Put on {title} from {artist}."],
    "duration:time",
    "Now playing {title} by {artist}.",
  ),
  tool(
    "set_light",
    "Turn a light on or off",
    "room:word; on:boolean",
    [
      "Set the light in the {room} with on = {on}.",
      "Light in room {room}: on is {on}.",
      "Change the {room} light, on should be {on}.",
    ],
    "brightness:small",
    "The light in the {room} is set. The brightness is {brightness}.",
  ),
  tool(
    "calculate",
    "Compute a sum or a product of two numbers",
    "operation:enum:add,multiply,subtract,divide; a:integer; b:integer",
    [
      "Use the calculator: {operation} {a} and {b}.",
      "What do you get if you {operation} {a} and {b}?",
      "Please {operation} the numbers {a} and {b}.",
    ],
    "result:integer",
    "The result is {result}.",
  ),
  tool(
    "get_time",
    "Get the local time in a city",
    "city:city",
    ["What time is it in {city}?", "Tell me the time in {city}.", "What is the local time in {city} now?"],
    "time:time",
    "It is {time} in {city}.",
  ),
  tool(
    "add_note",
    "Save a note",
    "text:phrase",
    ["Note down: {text}.", 'Save the note "{text}".', "Remember this for me: {text}."],
    "note_id:code",
    "The note was saved with the id {note_id}.",
  ),
  tool(
    "rent_car",
    "Rent a car",
    "city:city; start_date:date; days:small; automatic:boolean",
    [
      "Rent a car in {city} from {start_date} for {days} days, automatic {automatic}.",
      "I need a car in {city} for {days} days starting {start_date} (automatic: {automatic}).",
      "Car rental: {city}, {start_date}, {days} days, automatic is {automatic}.",
    ],
    "car:product; price:price",
    "You get the {car} in {city} for {price}.",
  ),
  tool(
    "find_contact",
    "Find the email address of a person",
    "name:person",
    ["What is the email address of {name}?", "Find the email of {name}.", "How can I write to {name}?"],
    "email:email",
    "The email address of {name} is {email}.",
  ),
  tool(
    "list_files",
    "Count the files of a folder",
    "folder:word",
    [
      "How many files are in the folder {folder}?",
      "Count the files in {folder}.",
      "Look into the folder {folder} and count the files.",
    ],
    "count:integer",
    "There are {count} files in {folder}.",
  ),
  tool(
    "get_user",
    "Get a user by id",
    "user_id:code",
    ["Who is user {user_id}?", "Get the user with the id {user_id}.", "Look up user {user_id}."],
    "name:person; city:city",
    "User {user_id} is {name} from {city}.",
  ),
];
