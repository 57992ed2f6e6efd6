"""Word lists for the plain instructions: `word:answer` pairs separated by commas, and plain lists."""

from selfrag_jax.demo.names import words


def pairs(text: str) -> tuple[tuple[str, str], ...]:
    """`a:b` items, separated by commas or line ends."""
    found = []
    for item in text.replace("\n", ",").split(","):
        if item.strip():
            left, _, right = item.strip().partition(":")
            found.append((left.strip(), right.strip()))
    return tuple(found)


PLURALS = pairs("""
mouse:mice, man:men, woman:women, child:children, foot:feet, tooth:teeth, goose:geese, ox:oxen, person:people,
louse:lice, knife:knives, wife:wives, life:lives, leaf:leaves, loaf:loaves, wolf:wolves, half:halves, calf:calves,
shelf:shelves, thief:thieves, elf:elves, scarf:scarves, hoof:hooves, sheep:sheep, deer:deer, fish:fish, series:series,
species:species, cactus:cacti, crisis:crises, analysis:analyses, thesis:theses, oasis:oases, box:boxes, fox:foxes,
bus:buses, glass:glasses, class:classes, kiss:kisses, dress:dresses, church:churches, watch:watches, match:matches,
bench:benches, peach:peaches, brush:brushes, dish:dishes, wish:wishes, bush:bushes, tomato:tomatoes, potato:potatoes,
hero:heroes, echo:echoes, piano:pianos, photo:photos, radio:radios, zoo:zoos, baby:babies, city:cities, lady:ladies,
story:stories, party:parties, berry:berries, cherry:cherries, fly:flies, family:families, country:countries,
puppy:puppies, pony:ponies, army:armies, day:days, boy:boys, key:keys, monkey:monkeys, toy:toys, valley:valleys,
donkey:donkeys, turkey:turkeys, cat:cats, dog:dogs, book:books, house:houses, horse:horses, tree:trees, car:cars,
chair:chairs, table:tables, apple:apples, river:rivers, garden:gardens, window:windows, door:doors, pencil:pencils,
flower:flowers, bird:birds, king:kings, queen:queens, road:roads, ship:ships, train:trains, letter:letters,
teacher:teachers, doctor:doctors, school:schools, hand:hands, eye:eyes, arm:arms, friend:friends, song:songs,
game:games, ball:balls, shoe:shoes, hat:hats, cup:cups, spoon:spoons, plate:plates, bottle:bottles, bridge:bridges,
mountain:mountains, cloud:clouds, star:stars, planet:planets, island:islands, forest:forests, farmer:farmers,
nurse:nurses, judge:judges, prize:prizes, bush:bushes, tax:taxes, lens:lenses, virus:viruses, circus:circuses
""")
OPPOSITES = pairs("""
hot:cold|cool, big:small|little|tiny, tall:short|small|low, fast:slow, old:young|new|modern, new:old, good:bad|evil,
happy:sad|unhappy, light:dark|heavy, early:late, easy:hard|difficult, full:empty, high:low, in:out, up:down, left:right,
near:far|distant|away, open:closed|shut, rich:poor, strong:weak|feeble, thick:thin, wet:dry, wide:narrow,
true:false|untrue, loud:quiet|silent|soft, clean:dirty|unclean, dark:light|bright, long:short, deep:shallow,
sweet:sour|bitter|salty, soft:hard|loud|rough, safe:dangerous|unsafe, heavy:light, begin:end|finish|stop, buy:sell,
give:take|receive, win:lose, push:pull, laugh:cry|weep, love:hate|hatred, remember:forget, arrive:leave|depart,
day:night, summer:winter, north:south, east:west, first:last, always:never, inside:outside, above:below|under|beneath,
before:after, more:less|fewer, many:few, same:different|other, alive:dead, awake:asleep|sleeping,
brave:afraid|coward|timid|fearful|scared, smooth:rough|uneven, sharp:blunt|dull, tight:loose,
cheap:expensive|costly|dear, ancient:modern|new|recent, polite:rude|impolite, success:failure|defeat,
question:answer|reply, entrance:exit|way out, top:bottom, front:back|rear
""")
SYNONYMS = pairs("""
big:large|huge|great|giant|enormous|massive, small:little|tiny|mini|minute, happy:glad|joyful|cheerful|content|pleased,
sad:unhappy|sorrowful|gloomy|blue|down, fast:quick|rapid|swift|speedy, begin:start|commence,
end:finish|stop|conclude|close|final, smart:clever|intelligent|bright|wise, angry:mad|furious|cross|irate|upset,
beautiful:pretty|lovely|gorgeous|attractive|handsome, rich:wealthy|affluent|prosperous|well-off,
scared:afraid|frightened|fearful|terrified, tired:weary|exhausted|sleepy|worn out,
quiet:silent|calm|still|hushed|peaceful,
strange:odd|weird|unusual|peculiar|bizarre, hard:difficult|tough|solid|firm, easy:simple|effortless,
shout:yell|scream|cry|call, jump:leap|hop|spring|bound, look:see|watch|gaze|view|glance, talk:speak|chat|converse,
help:assist|aid|support, buy:purchase|get|acquire, choose:pick|select|decide, cold:chilly|cool|freezing|icy,
correct:right|accurate|true, error:mistake|fault|slip, gift:present, home:house|residence|dwelling,
hurry:rush|hasten|speed, job:work|occupation|task|profession|position, kind:nice|gentle|good|caring|friendly,
large:big|huge|great|enormous|giant|massive, mistake:error|fault|slip, near:close|nearby, reply:answer|respond|response,
rock:stone|boulder, sick:ill|unwell|ailing, street:road|avenue|lane, tale:story|fable|legend,
throw:toss|cast|hurl|pitch|fling, wish:want|desire|hope, woods:forest|trees, brave:bold|courageous|fearless|daring,
calm:peaceful|quiet|still|relaxed|serene, centre:middle|core|heart|center|hub,
famous:well-known|renowned|celebrated|popular|noted, fix:repair|mend, funny:amusing|humorous|comical|hilarious,
garbage:trash|rubbish|waste, huge:enormous|big|large|giant|massive|vast|great, idea:thought|notion|concept
""")
PASTS = pairs("""
go:went, see:saw, eat:ate, run:ran, write:wrote, take:took, give:gave, come:came, make:made, find:found, think:thought,
buy:bought, bring:brought, catch:caught, teach:taught, sing:sang, drink:drank, swim:swam, begin:began, speak:spoke,
break:broke, drive:drove, ride:rode, fly:flew, grow:grew, know:knew, throw:threw, draw:drew, fall:fell, feel:felt,
keep:kept, sleep:slept, leave:left, meet:met, sit:sat, stand:stood, tell:told, sell:sold, win:won, lose:lost,
build:built, send:sent, spend:spent, hear:heard, hold:held, read:read, say:said, pay:paid, get:got, forget:forgot,
wear:wore, choose:chose, hide:hid, bite:bit, shake:shook, walk:walked, talk:talked, play:played, work:worked,
help:helped, look:looked, open:opened, close:closed, laugh:laughed, jump:jumped, cook:cooked, clean:cleaned,
paint:painted, visit:visited, watch:watched, ask:asked, call:called, start:started, stop:stopped, carry:carried,
study:studied, try:tried, cry:cried, love:loved, dance:danced, smile:smiled, move:moved, live:lived, learn:learned
""")
COMPARATIVES = pairs("""
big:bigger, small:smaller, tall:taller, fast:faster, slow:slower, old:older, young:younger, happy:happier, easy:easier,
good:better, bad:worse, hot:hotter, cold:colder, long:longer, short:shorter, strong:stronger, weak:weaker, rich:richer,
poor:poorer, wide:wider, thin:thinner, heavy:heavier, light:lighter, dark:darker, loud:louder, quiet:quieter,
clean:cleaner, dirty:dirtier, cheap:cheaper, deep:deeper, funny:funnier, kind:kinder, near:nearer, far:farther
""")
SUPERLATIVES = pairs("""
big:biggest, small:smallest, tall:tallest, fast:fastest, slow:slowest, old:oldest, young:youngest, happy:happiest,
easy:easiest, good:best, bad:worst, hot:hottest, cold:coldest, long:longest, short:shortest, strong:strongest,
weak:weakest, rich:richest, poor:poorest, wide:widest, thin:thinnest, heavy:heaviest, light:lightest, dark:darkest,
loud:loudest, quiet:quietest, clean:cleanest, dirty:dirtiest, cheap:cheapest, deep:deepest, funny:funniest, kind:kindest
""")
ING_FORMS = pairs("""
run:running, swim:swimming, sit:sitting, write:writing, make:making, take:taking, go:going, play:playing, eat:eating,
read:reading, sing:singing, dance:dancing, walk:walking, talk:talking, drive:driving, ride:riding, cook:cooking,
sleep:sleeping, jump:jumping, stop:stopping, cut:cutting, get:getting, open:opening, help:helping, smile:smiling,
bake:baking, dig:digging, fly:flying, cry:crying, study:studying, paint:painting, draw:drawing, build:building
""")
ADVERBS = pairs("""
quick:quickly, slow:slowly, happy:happily, sad:sadly, quiet:quietly, loud:loudly, careful:carefully, easy:easily,
soft:softly, kind:kindly, brave:bravely, angry:angrily, polite:politely, bad:badly, clear:clearly, sudden:suddenly,
gentle:gently, simple:simply, perfect:perfectly, safe:safely, warm:warmly, proud:proudly, calm:calmly, lazy:lazily
""")
YOUNG = pairs("""
dog:puppy, cat:kitten, cow:calf, horse:foal, sheep:lamb, pig:piglet, goat:kid, duck:duckling, goose:gosling, hen:chick,
bear:cub, lion:cub, deer:fawn, frog:tadpole, kangaroo:joey, swan:cygnet, owl:owlet|chick, butterfly:caterpillar|larva
""")
SOUNDS = pairs("""
dog:barks|woof|bark, cat:meows|purr|meow, cow:moos|moo, sheep:bleats|baa|bleat, horse:neighs|neigh|whinn,
pig:oinks|oink|grunt, duck:quacks|quack, lion:roars|roar, bee:buzzes|buzz, owl:hoots|hoot, snake:hisses|hiss,
frog:croaks|croak|ribbit, wolf:howls|howl, mouse:squeaks|squeak, donkey:brays|bray|hee, rooster:crows|crow|cock,
crow:caws|caw, bird:chirps|chirp|tweet|sing
""")
COLOURS_OF = pairs("""
grass:green, snow:white, coal:black, a clear sky:blue, a ripe banana:yellow, blood:red, a ripe tomato:red, milk:white,
a lemon:yellow, an orange:orange, a crow:black, a strawberry:red, spinach:green, chocolate:brown, a flamingo:pink,
a carrot:orange, a polar bear:white, a blueberry:blue, a sunflower:yellow, a frog:green
""")
MIXES = pairs("""
red and yellow:orange, yellow and red:orange, blue and yellow:green, yellow and blue:green, red and blue:purple,
blue and red:purple, red and white:pink, white and red:pink, black and white:grey, white and black:grey,
blue and white:light blue, green and white:light green
""")
TOOLS = pairs("""
cut paper:scissors, hit a nail:a hammer, sweep the floor:a broom, write a letter:a pen|pencil|paper, eat soup:a spoon,
take a photo:a camera|phone, tell the time:a clock|watch, open a lock:a key, dig a hole:a shovel|spade,
comb hair:a comb,
brush teeth:a toothbrush, measure length:a ruler|tape|measure, sew a button:a needle|thread,
stay dry in the rain:an umbrella|raincoat, cut bread:a knife, paint a wall:a brush|paint|roller,
boil water:a kettle|pot|pan, call a friend:a phone|telephone, chop wood:an axe, tighten a screw:a screwdriver,
dry yourself:a towel
""")
SIDES = pairs("""
a triangle:three, a square:four, a rectangle:four, a pentagon:five, a hexagon:six, an octagon:eight, a heptagon:seven,
a decagon:ten, a rhombus:four, a trapezoid:four
""")
CATEGORIES = {
    "fruit": words("apple banana pear grape plum peach cherry mango lemon orange melon kiwi"),
    "animal": words("dog cat horse cow sheep lion tiger bear wolf rabbit goat pig"),
    "colour": words("red blue green yellow purple black white brown pink grey"),
    "vegetable": words("carrot onion potato cabbage spinach pea bean leek garlic turnip"),
    "tool": words("hammer saw drill wrench pliers axe shovel rake chisel"),
    "instrument": words("piano violin guitar flute drum trumpet harp cello"),
    "garment": words("shirt coat hat sock scarf skirt glove jacket sweater"),
    "bird": words("robin eagle owl crow sparrow duck swan pigeon"),
    "drink": words("water tea coffee milk juice lemonade cocoa"),
    "vehicle": words("car bus train bicycle truck boat tram van"),
    "flower": words("rose tulip daisy lily orchid violet sunflower poppy"),
    "sport": words("football tennis hockey golf swimming boxing rowing cricket"),
}
# What else a member of a category may be called.
CATEGORY_NAMES = {
    "instrument": "A musical instrument.", "colour": "A color.", "garment": "A piece of clothing.",
    "drink": "A beverage.",
}  # fmt: skip
NOUNS = words("""
apple banana chair table river garden window pencil flower bird road ship train letter teacher school hand friend
song game ball shoe hat cup spoon plate bottle bridge mountain cloud star planet forest farmer lamp box clock coat door
drum eagle fence glove horse jacket kite lemon mirror nest ocean paper rabbit shirt tiger umbrella violin wagon yard
zebra candle basket button circle doctor engine finger guitar hammer insect jungle kitchen ladder magnet needle orange
pocket rocket saddle ticket valley wallet artist bakery camera desert
""")
SHORT_WORDS = words("""
cat dog sun hat pen cup box bed map red run top net jam fox key leg nut owl pig rug tea van web zip ant bag
cow egg fan gum hen ice jar kit log mud oak pot rat sea toy vet wax bee arm ear lip toe bus car tree fish book milk moon
star ship road hand door lamp rain snow wind leaf frog duck bear lion wolf
""")
SENTENCES = """\
the sun is warm|my dog likes to run|we went to the park|she reads a book|the train was late|he plays the piano
the soup is hot|they live by the sea|the door is open|I like green apples|the baby is asleep|our teacher is kind
the river is deep|a bird sang in the tree|the bread is fresh|we walked to school|the moon is bright|she has a new coat
the garden is quiet|my brother can swim|the shop is closed|it rained all day|the cake tastes good|he found a coin
the bus stops here|we saw a red boat|the kitchen is clean|the water is cold|her shoes are new|the cat sleeps
the lamp is broken|we sing every morning|the road is long|his bag is heavy|the tea is ready|the leaves are falling"""
SENTENCE_LIST = [s for line in SENTENCES.splitlines() for s in line.split("|")]
ACRONYMS = pairs("""
central processing unit:CPU, random access memory:RAM, personal computer:PC, frequently asked questions:FAQ,
as soon as possible:ASAP, by the way:BTW, for your information:FYI, do it yourself:DIY, estimated time of arrival:ETA,
portable document format:PDF, world wide web:WWW, compact disc:CD, digital video disc:DVD, light emitting diode:LED,
global positioning system:GPS, automated teller machine:ATM, very important person:VIP, too long did not read:TLDR,
unidentified flying object:UFO, public address:PA, graphics processing unit:GPU, virtual private network:VPN,
be right back:BRB, in my opinion:IMO, laugh out loud:LOL, to be determined:TBD, question and answer:QA
""")
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")
NUMBER_WORDS = words("""
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty
""")
ORDINALS = words("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
