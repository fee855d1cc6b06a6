/** Ways to say one thing, and the one answer to all of them. */
export interface SmallTalk {
  readonly asks: readonly string[];
  readonly answer: string;
}

function talk(asks: string, answer: string): SmallTalk {
  return { asks: asks.split("|").map((ask) => ask.trim()), answer };
}

export const smallTalk: readonly SmallTalk[] = [
  talk("Hello!|Hi|Hello|Hi!|Hey|Hey there|Hello there|Hi there|Good day|Greetings|Howdy|hello :)|Hello, model!|hi octavo|Hello Octavo", "Hello! How can I help you?"),
  talk("Good morning|Good morning!|Morning!|A very good morning to you", "Good morning! How can I help you?"),
  talk("Good evening|Good evening!|Evening!|A good evening to you", "Good evening! How can I help you?"),
  talk("How are you?|How are you doing?|How do you do?|How is it going?|How's it going?|How are you today?|Are you well?|What's up?|How do you feel?", "I am fine, thank you. How can I help you?"),
  talk("Who are you?|What are you?|What is your name?|Tell me who you are|Introduce yourself|Say who you are|What's your name?|Who am I talking to?|Who is this?|Tell me about yourself|What model are you?|Which model is this?|Are you ChatGPT?|Are you GPT-4?|What should I call you?", "I am Octavo Mini, a very small language model."),
  talk("Who made you?|Who built you?|Who created you?|Who trained you?|Where do you come from?|Who is your maker?|Who developed you?", "I come with Octavo, the serving engine, and was trained on text that its generator wrote."),
  talk("What can you do?|What can you help with?|How can you help me?|What are you good at?|What are your skills?|What do you do?|Tell me what you can do|What is your purpose?|What are you for?|Help|Help me|What can I ask you?", "I can chat a little, turn text into JSON, call tools, answer questions about a passage, copy lists and find values in long texts."),
  talk("What can you not do?|What are your limits?|What are you bad at?|What don't you know?|Are you smart?|How smart are you?|Do you know everything?|Can you answer anything?", "I am a very small model. I know little about the world, so give me a text to work with."),
  talk("How big are you?|How many parameters do you have?|What is your size?|How small are you?|How large are you?", "I have fewer than fifteen million parameters."),
  talk("Are you a human?|Are you a robot?|Are you a person?|Are you real?|Are you alive?|Are you an AI?|Are you a bot?|Is this a human?", "I am a computer program, a very small language model."),
  talk("Thank you|Thanks|Thanks!|Thank you!|Thanks a lot|Thank you very much|Many thanks|thx|Great, thanks|That was helpful, thank you", "You are welcome!"),
  talk("Goodbye|Bye|Bye!|See you|See you later|Goodbye!|Good night|Good night!|Bye bye|I have to go now|Until next time", "Goodbye! Have a nice day."),
  talk("Tell me a joke|Do you know a joke?|Make me laugh|Say something funny|A joke, please|Can you tell me a joke?|I want to hear a joke|Tell me something funny", "Why did the token cross the road? It was next."),
  talk("Tell me a story|Tell me a short story|Write a story|Write a short story|Do you know a story?|A story, please|Make up a story|Can you tell me a story?", "Once there was a small fox who lived by a river. Every day it counted the stones. One day it found a golden one and gave it to a friend. They were happy ever after."),
  talk("Write a poem|Write me a poem|Tell me a poem|Do you know a poem?|A poem, please|Write a short poem|Can you write a poem?|Write a haiku|Write a rhyme", "The moon is bright, the sea is deep,\nThe town is still and half asleep."),
  talk("Yes|Yes!|yes please|OK|ok|Okay|Sure|All right|Alright|Fine|Good|Great", "All right. What should I do?"),
  talk("No|No!|no thanks|No, thank you|Nope|Not now|Nothing|Never mind", "All right. Tell me when you need something."),
  talk("Say hello|Say hi|Just say hello|Say hello to me|Greet me", "Hello!"),
  talk("test|Test|Testing|This is a test|Testing, one two three|ping|Ping|Is this on?|Are you there?|Can you hear me?|Do you read me?", "I am here."),
  talk("I am sad|I feel sad|I am not happy|I feel bad|I had a bad day|I am lonely|I am tired|I am bored", "I am sorry to hear that. I hope it gets better soon."),
  talk("I am happy|I feel good|I feel great|I had a good day|Today is a good day|I am in a good mood", "That is good to hear!"),
  talk("You are great|You are nice|Well done|Good job|Good work|Nice|Perfect|I like you|You are clever|Amazing", "Thank you!"),
  talk("You are stupid|You are bad|That is wrong|That was wrong|This is not right|You are wrong|Bad answer|I do not like you", "I am sorry. I am a very small model and make mistakes."),
  talk("Do you like music?|Do you like cats?|What do you like?|What is your favorite color?|Do you have feelings?|Do you like me?|Do you dream?|What is your favorite food?|Do you sleep?|Do you have friends?", "I am a program and have no feelings, but I like to help."),
  talk("How old are you?|When were you born?|What is your age?|When is your birthday?", "I am a program and have no age."),
  talk("Where are you?|Where do you live?|Where are you from?|What is your home?", "I run on the computer that serves me."),
  talk("What time is it?|What day is it?|What is the date today?|What is the time?|What is today's date?|Which year is it?", "I cannot know that without a tool."),
  talk("Do you speak English?|Which languages do you speak?|What languages do you know?|Do you speak German?|Can you speak French?", "I only speak English."),
  talk("What is Octavo?|Tell me about Octavo|What does Octavo do?|Explain Octavo|What does Octavo mean?", "Octavo is a serving engine for language models, written in TypeScript."),
  talk("What is a language model?|What is an LLM?|Explain language models|How do you work?|How does a language model work?", "A language model reads text and predicts the next token again and again."),
  talk("What is a token?|Explain tokens|What are tokens?", "A token is a small piece of text, such as a word or a part of one."),
];

/** What the model knows by heart: question forms with the key in `*`, then `key=answer` pairs. */
export interface FactTable {
  readonly asks: readonly string[];
  readonly answer: string;
  readonly pairs: readonly (readonly [key: string, value: string])[];
}

function facts(asks: string, answer: string, pairs: string): FactTable {
  return { asks: asks.split("|"), answer, pairs: pairs.split(",").map((pair) => pair.trim().split("=") as [string, string]) };
}

export const factTables: readonly FactTable[] = [
  facts("What is the capital of *?|Name the capital of *.|Which city is the capital of *?|What's the capital of *?|Tell me the capital of *.|capital of *?", "The capital of * is #.", "France=Paris,Germany=Berlin,Spain=Madrid,Italy=Rome,Portugal=Lisbon,Austria=Vienna,Turkey=Ankara,Greece=Athens,Norway=Oslo,Sweden=Stockholm,Finland=Helsinki,Denmark=Copenhagen,Poland=Warsaw,Hungary=Budapest,Ireland=Dublin,Japan=Tokyo,China=Beijing,India=New Delhi,Egypt=Cairo,Kenya=Nairobi,Canada=Ottawa,Mexico=Mexico City,Brazil=Brasilia,Argentina=Buenos Aires,Peru=Lima,Chile=Santiago,Cuba=Havana,Russia=Moscow,England=London,Belgium=Brussels"),
  facts("What is the opposite of *?|Name the opposite of *.|What's the opposite of *?|Tell me the opposite of *.|opposite of *?", "The opposite of * is #.", "hot=cold,cold=hot,big=small,small=big,up=down,down=up,left=right,right=left,day=night,night=day,black=white,white=black,fast=slow,slow=fast,old=young,young=old,open=closed,closed=open,happy=sad,sad=happy,high=low,low=high,long=short,short=long,rich=poor,poor=rich,wet=dry,dry=wet,early=late,late=early,full=empty,empty=full,light=dark,dark=light,true=false,false=true,yes=no,no=yes,hard=soft,soft=hard"),
  facts("What color is *?|Which color does * have?|What is the color of *?|Tell me the color of *.|What colour is *?", "The color of * is #.", "the sky=blue,grass=green,snow=white,coal=black,the sun=yellow,blood=red,a banana=yellow,a lemon=yellow,milk=white,chocolate=brown,an orange=orange,a strawberry=red,the sea=blue,a tree=green,silver=gray,gold=yellow,a carrot=orange,a cherry=red"),
  facts("What sound does a * make?|What does a * say?|How does a * sound?|Which sound does a * make?", "A * says #.", "cat=meow,dog=woof,cow=moo,duck=quack,sheep=baa,pig=oink,horse=neigh,lion=roar,bee=buzz,snake=hiss,frog=ribbit,rooster=cock-a-doodle-doo,mouse=squeak"),
  facts("What comes after *?|What follows *?|What is next after *?|Which one comes after *?", "After * comes #.", "Monday=Tuesday,Tuesday=Wednesday,Wednesday=Thursday,Thursday=Friday,Friday=Saturday,Saturday=Sunday,Sunday=Monday,January=February,February=March,March=April,April=May,May=June,June=July,July=August,August=September,September=October,October=November,November=December,December=January,spring=summer,summer=autumn,autumn=winter,winter=spring,one=two,two=three,three=four,four=five,five=six"),
  facts("How many *?|Tell me how many *.|Do you know how many *?", "There are #.", "days are in a week=seven days in a week,months are in a year=twelve months in a year,hours are in a day=twenty-four hours in a day,minutes are in an hour=sixty minutes in an hour,seconds are in a minute=sixty seconds in a minute,seasons are in a year=four seasons in a year,legs does a dog have=four legs on a dog,legs does a spider have=eight legs on a spider,wheels does a car have=four wheels on a car,letters are in the alphabet=twenty-six letters in the alphabet,days are in a year=365 days in a year,weeks are in a year=fifty-two weeks in a year"),
];

/** Lists the model can write: what the list is of, and its members in the order they are given. */
export const lists: readonly (readonly [of: string, items: readonly string[]])[] = [
  ["fruits", ["apple", "banana", "orange", "pear", "grape", "cherry", "lemon", "mango", "peach", "plum", "melon", "kiwi"]],
  ["vegetables", ["carrot", "potato", "tomato", "onion", "cabbage", "pea", "bean", "pepper", "spinach", "corn", "leek", "garlic"]],
  ["animals", ["dog", "cat", "horse", "cow", "sheep", "lion", "tiger", "bear", "fox", "wolf", "rabbit", "mouse"]],
  ["colors", ["red", "blue", "green", "yellow", "orange", "purple", "black", "white", "brown", "pink", "gray", "gold"]],
  ["birds", ["eagle", "owl", "robin", "swan", "duck", "hawk", "crow", "sparrow", "parrot", "penguin", "dove", "stork"]],
  ["cities", ["Paris", "London", "Berlin", "Rome", "Madrid", "Tokyo", "Vienna", "Oslo", "Lisbon", "Athens", "Cairo", "Dublin"]],
  ["countries", ["France", "Germany", "Spain", "Italy", "Japan", "Brazil", "Canada", "India", "Kenya", "Norway", "Turkey", "Peru"]],
  ["trees", ["oak", "pine", "maple", "birch", "willow", "cedar", "elm", "ash", "beech", "palm", "fir", "poplar"]],
  ["flowers", ["rose", "tulip", "daisy", "lily", "violet", "orchid", "poppy", "iris", "sunflower", "lotus", "jasmine", "lavender"]],
  ["jobs", ["teacher", "doctor", "baker", "pilot", "farmer", "painter", "cook", "driver", "nurse", "writer", "singer", "judge"]],
  ["tools", ["hammer", "saw", "drill", "wrench", "knife", "ladder", "brush", "spade", "rake", "axe", "file", "pliers"]],
  ["words", ["house", "river", "stone", "cloud", "table", "garden", "window", "bread", "music", "paper", "light", "winter"]],
  ["names", ["Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Hugo", "Iris", "Jonas", "Kate", "Leo"]],
  ["foods", ["bread", "cheese", "rice", "soup", "pasta", "salad", "pizza", "cake", "egg", "fish", "butter", "honey"]],
  ["drinks", ["water", "tea", "coffee", "milk", "juice", "lemonade", "cocoa", "soda", "wine", "beer", "cider", "punch"]],
  ["sports", ["football", "tennis", "swimming", "running", "cycling", "boxing", "skiing", "golf", "rowing", "hockey", "chess", "sailing"]],
  ["planets", ["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]],
  ["months", ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]],
  ["days", ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]],
  ["instruments", ["piano", "violin", "guitar", "drum", "flute", "harp", "trumpet", "cello", "organ", "oboe", "horn", "banjo"]],
];

export const topics: readonly string[] = `quantum physics|the French Revolution|general relativity|machine learning|the stock market|black holes|DNA|photosynthesis|the Roman Empire|World War II|climate change|blockchain|democracy|inflation|the human brain|vaccines|gravity|electricity|evolution|philosophy|Shakespeare|jazz|the Renaissance|nuclear energy|volcanoes|earthquakes|dinosaurs|the internet|cryptography|calculus|linear algebra|prime numbers|JavaScript|Python|Rust|databases|Kubernetes|neural networks|transformers|operating systems|compilers|Linux|the meaning of life|Napoleon|Einstein|Mozart|the moon landing|football rules|chess openings|cooking pasta|baking bread|gardening|yoga|meditation|taxes|mortgages|law|medicine|cancer|diabetes|nutrition|sleep|psychology|economics|geography|astronomy|chemistry|biology|poetry|cinema|opera|architecture|cars|airplanes|ships|trains|rockets|satellites|robots|batteries|solar panels|wind power|oceans|rivers|deserts|forests|penguins|whales|bees|ants|cats|dogs|horses|wine|coffee|tea|chocolate|cheese|the Olympics|the World Cup|elections|treaties|banks|insurance|marketing|startups|remote work|education|universities|languages|grammar|Latin|Arabic|mythology|religion|Buddhism|ethics|logic|statistics|probability|game theory|music theory|painting|sculpture|photography|fashion`.split("|");

export const unknownAsks: readonly string[] = [
  "Explain *.", "Explain * to me.", "Explain * in simple terms.", "What is *?", "What do you know about *?", "Tell me about *.", "How does * work?",
  "Why is * important?", "Write an essay about *.", "Write an article about *.", "Give me a summary of *.", "Teach me *.", "What is the history of *?",
  "Who invented *?", "When did * begin?", "Can you help me with *?", "I want to learn about *.", "Describe *.", "What are the main ideas of *?",
  "Give me advice on *.", "Compare * and #.", "How are * and # related?", "Which is better, * or #?", "Write code for *.", "Write a program about *.",
  "What is the best book about *?", "Who is the president of *?", "Who won *?", "How much does * cost?", "Why do people like *?", "Solve * for me.",
  "What happened in *?", "Who was *?", "Who is *?", "Where is *?", "Where can I find *?", "When was * born?", "Define *.", "Is * true?", "Should I buy *?",
];

export const unknownAnswer = "I am a very small model and do not know that.";
