const words = (text: string): readonly string[] => text.trim().split(/\s+/);

export const firstNames = words(`
Ada Adam Agnes Aisha Alan Alba Alice Amara Amir Anders Andrea Anita Anton Arjun Astrid Aylin Beatrice Ben Bianca Boris
Bruno Camila Carl Carmen Cecil Chen Chiara Clara Cyrus Dalia Daniel Daria David Deniz Diana Diego Dmitri Dora Edgar
Edith Elena Elias Elif Emil Emma Erik Esme Esther Eva Fabio Fatima Felix Fiona Flora Frank Freya Gabriel Georg Gina
Grace Greta Gustav Hana Hanna Harald Hassan Hector Helen Hugo Ibrahim Ida Igor Ines Ingrid Irene Iris Isaac Ivan Jana
Jasmin Javier Jean Jens Joan Johan Jonas Jorge Julia Jun Kamal Karin Karl Kate Keiko Kemal Kira Klara Kofi Lara Lars
Laura Leila Lena Leo Liam Lidia Lina Linus Livia Louis Lucia Luis Luna Magda Maja Malik Marco Maria Marta Martin Mateo
Maya Mehmet Mei Mila Milan Mina Miriam Mona Nadia Naomi Nathan Nelly Nico Nils Nina Noah Nora Olaf Olga Oliver Omar
Oscar Otto Pablo Paula Pavel Pedro Petra Philip Pia Priya Quentin Rafael Rahul Raisa Ravi Rebecca Rene Rita Robert Rosa
Rosalind Ruben Ruth Sadia Said Samir Samuel Sandra Sara Selma Simon Sofia Sonja Stefan Stella Sven Tamar Tanja Tara
Tariq Teresa Theo Thomas Tilda Timo Tobias Tomas Ulla Uma Ursula Vera Victor Viola Walter Wanda Wei Willa Xavier Yara
Yasmin Yuki Yusuf Zara Zoe Zora`);

export const lastNames = words(`
Abbott Adler Ahmed Albrecht Almeida Alvarez Andersen Arslan Bailey Baker Banerjee Barros Bauer Becker Bell Berg Bianchi
Blake Bosch Brandt Brown Bruun Campos Carver Castro Chandra Cheng Clarke Cohen Costa Cruz Dahl Dawson Delgado Demir
Diaz Doyle Duarte Dubois Eklund Ellis Engel Eriksen Evans Farah Faber Ferrari Fischer Fletcher Flores Fontaine Foster
Frank Fuchs Garcia Gibson Gomez Grant Greco Gupta Haas Hahn Hansen Harris Hayashi Hayes Heinz Hoffman Holm Horvat
Hughes Ibarra Ito Ivanov Jackson Jansen Jensen Joshi Kaiser Kapoor Kaya Keller Khan Kim King Klein Koch Kovacs Kruger
Kumar Lang Larsen Laurent Lee Lehmann Lewis Lind Lopez Lorenz Lund Maier Marino Marsh Martin Mayer Mendez Meyer Miller
Molina Moore Moreau Morris Murphy Nagy Nakamura Navarro Neumann Nielsen Nilsson Novak Nowak Ochoa Olsen Ortega Otieno
Park Parker Patel Perez Petrov Pfeiffer Pinto Popov Porter Quinn Rahman Ramos Reed Reyes Ricci Richter Rivera Rossi
Roth Russo Saito Salazar Sanchez Santos Sato Schmidt Schulz Sharma Silva Singh Soto Stein Suzuki Tanaka Taylor Torres
Turner Ueda Vargas Vega Vidal Vogel Wagner Walsh Wang Weber Weiss White Winter Wolf Wong Wright Yamada Yilmaz Young
Zeller Zhang Ziegler Zimmer`);

export const cities = words(`
Aarhus Accra Ankara Antwerp Athens Baku Bamako Basel Beirut Belgrade Bergen Berlin Bern Bilbao Bogota Bologna Bonn
Boston Bremen Bristol Brussels Budapest Cairo Calgary Cardiff Chicago Cologne Copenhagen Cordoba Dakar Dallas Delhi
Denver Detroit Dhaka Doha Dresden Dubai Dublin Durban Edinburgh Essen Florence Geneva Genoa Ghent Glasgow Graz Hamburg
Hanoi Harare Havana Helsinki Houston Istanbul Izmir Jakarta Karachi Kigali Krakow Kyoto Lagos Leeds Leipzig Lille Lima
Lisbon Liverpool Ljubljana London Lusaka Lyon Madrid Malaga Malmo Manila Marseille Miami Milan Montreal Munich Nagoya
Nairobi Nantes Naples Nice Odessa Osaka Oslo Ottawa Oxford Palermo Paris Perth Porto Prague Quito Riga Rome Rotterdam
Salzburg Santiago Seattle Seoul Seville Sofia Stockholm Sydney Tallinn Tampere Tokyo Toronto Toulouse Tunis Turin
Utrecht Valencia Vancouver Venice Verona Vienna Vilnius Warsaw York Zagreb Zurich`);

export const streetWords = words(`
Acorn Alder Amber Apple Ash Bay Beech Birch Bridge Brook Canal Castle Cedar Chapel Cherry Church Cliff Clover Copper
Coral Elm Falcon Fern Field Forest Garden Gate Glen Grove Harbor Hazel Heron Hill Holly Iron Ivy Juniper King Lake Lark
Laurel Lily Linden Maple Market Meadow Mill Moss Oak Olive Orchard Park Pearl Pine Poplar Queen River Robin Rose Sage
School Spring Station Stone Summit Sunset Swan Thistle Tower Valley Walnut Water Willow`);

export const productAdjectives = words(`
Amber Arctic Blue Bold Bright Calm Classic Clear Compact Copper Coral Crimson Dark Deep Dual Easy Fast Fine Flat Gentle
Golden Grand Green Heavy Ivory Large Light Little Lunar Magnetic Mini Modern Orange Plain Prime Quiet Rapid Red Round
Royal Rustic Sharp Silver Simple Slim Small Smart Soft Solar Solid Steel Super Swift Tall Thin Tiny Turbo Velvet Vivid
Warm White Wide Wild Wooden Yellow`);

export const productNouns = words(`
backpack blanket blender bottle bowl broom brush bucket cable camera candle chair charger clock coat cup desk drill
drone easel fan flask folder fork frame glove grill guitar hammer hat headset heater helmet hinge jacket jar kettle
keyboard knife ladder lamp laptop lens lock magnet marker mat mirror monitor mouse mug needle notebook oven paddle pan
pen phone pillow planter plate printer projector pump radio razor router ruler saw scale scanner scarf scooter shelf
shirt sofa spade speaker spoon stool stove switch table tablet tent timer toaster torch towel tray tripod vase vest
wallet watch whistle`);

export const commonNouns = words(`
anchor apple arrow badge baker banner barn basket beach bell bird boat book box branch bread brick bridge button cabin
cake camel card carpet carrot castle cat chain cheese circle cliff cloud coffee coin comet compass corn cotton crown
cube curtain dagger daisy desert diamond dinner dog dolphin door dragon drum eagle earth egg elbow engine feather fence
field finger fire fish flag flame flower fog forest fox frog fruit garden gate ghost giant glass goat gold grape grass
harbor hawk hill honey horse hotel ice island ivory jewel jungle key king kite lake leaf lemon letter lion maple market
melon metal milk moon moss mountain nest night ocean olive onion orange owl paint palace paper path peach pearl pencil
pepper piano pilot planet plum pond potato prince queen rabbit rain raven ribbon ring river road robin rock rocket roof
root rope rose salt sand school shadow sheep shell ship silk silver snake snow soap spider spoon spring star stone storm
street sugar summer sun swan table temple thunder tiger tower train tree tunnel valley village violin wagon wall water
wave whale wheat wheel willow wind window winter wolf wood zebra`);
