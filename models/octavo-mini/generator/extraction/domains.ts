/** What a field holds; decides its schema type, its value and how the passage words it. */
export type FieldKind =
  | "person"
  | "first-name"
  | "city"
  | "street"
  | "company"
  | "email"
  | "phone"
  | "date"
  | "time"
  | "integer"
  | "small"
  | "price"
  | "code"
  | "digits"
  | "word"
  | "phrase"
  | "product"
  | "boolean"
  | "enum"
  | "string-list"
  | "number-list"
  | "address"
  | "contact"
  | "line-items"
  | "people";

export interface FieldPlan {
  readonly label: string;
  readonly kind: FieldKind;
  /** The members of an enum, or the adjective of a boolean. */
  readonly options?: readonly string[];
}

export interface Domain {
  readonly subject: string;
  readonly fields: readonly FieldPlan[];
}

/** `label:kind` or `label:kind:option,option`, one field per `;`. */
function domain(subject: string, plan: string): Domain {
  const fields = plan.split(";").map((entry): FieldPlan => {
    const [label = "", kind = "", options] = entry.trim().split(":");
    const base = { label, kind: kind as FieldKind };
    return options === undefined ? base : { ...base, options: options.split(",") };
  });
  return { subject, fields };
}

export const domains: readonly Domain[] = [
  domain(
    "person",
    "name:person; age:small; email:email; phone:phone; city:city; employer:company; birth date:date; job title:phrase; married:boolean:married; address:address; hobbies:string-list; blood type:enum:A,B,AB,O",
  ),
  domain(
    "order",
    "order id:code; customer:person; total:price; currency:enum:EUR,USD,GBP,JPY,CHF; order date:date; express:boolean:express; items:line-items; shipping address:address; status:enum:pending,shipped,delivered,cancelled; discount:small; coupon:code",
  ),
  domain(
    "invoice",
    "invoice number:code; vendor:company; buyer:person; amount:price; tax:price; due date:date; paid:boolean:paid; items:line-items; payment method:enum:card,cash,transfer,check; contact:contact",
  ),
  domain(
    "meeting",
    "title:phrase; organizer:person; date:date; start time:time; end time:time; room:code; attendees:people; online:boolean:online; duration:small; priority:enum:low,medium,high; city:city; topics:string-list",
  ),
  domain(
    "flight",
    "flight number:code; airline:company; origin:city; destination:city; departure date:date; departure time:time; gate:code; seat:code; passenger:person; price:price; delayed:boolean:delayed; cabin:enum:economy,business,first; terminal:small",
  ),
  domain(
    "ticket",
    "ticket id:code; reporter:person; severity:enum:low,medium,high,critical; component:word; opened:date; assignee:person; resolved:boolean:resolved; tags:string-list; version:code; summary:phrase; affected users:integer; contact:contact",
  ),
  domain(
    "device",
    "serial number:code; model:product; manufacturer:company; weight:price; battery:small; firmware:code; color:enum:black,white,red,blue,green,silver; waterproof:boolean:waterproof; warranty end:date; readings:number-list; owner:person; port:integer",
  ),
  domain(
    "book",
    "title:phrase; author:person; publisher:company; year:integer; pages:integer; isbn:digits; language:enum:English,French,German,Spanish,Turkish; price:price; illustrated:boolean:illustrated; genres:string-list; translator:person",
  ),
  domain(
    "property",
    "listing id:code; address:address; price:price; bedrooms:small; bathrooms:small; area:integer; agent:person; furnished:boolean:furnished; type:enum:house,apartment,studio,office; available from:date; features:string-list; contact:contact",
  ),
  domain(
    "employee",
    "employee id:code; name:person; department:word; manager:person; salary:integer; start date:date; remote:boolean:remote; office:city; skills:string-list; level:enum:junior,senior,lead,principal; email:email; address:address",
  ),
  domain(
    "package",
    "tracking number:code; sender:person; recipient:person; weight:price; origin:city; destination:city; ship date:date; fragile:boolean:fragile; carrier:company; status:enum:queued,sent,arrived,lost; contents:string-list; pieces:small",
  ),
  domain(
    "event",
    "name:phrase; venue:company; city:city; date:date; doors:time; price:price; sold out:boolean:sold out; performers:people; capacity:integer; category:enum:music,theater,sport,film; ticket code:code; sponsor:company",
  ),
  domain(
    "recipe",
    "name:phrase; author:first-name; servings:small; minutes:small; ingredients:string-list; difficulty:enum:easy,medium,hard; vegan:boolean:vegan; calories:integer; rating:price; published:date",
  ),
  domain(
    "server",
    "hostname:word; region:city; cpu count:small; memory:integer; owner:person; os:word; encrypted:boolean:encrypted; role:enum:web,database,cache,worker; ports:number-list; image:code; created:date; team:word",
  ),
];
