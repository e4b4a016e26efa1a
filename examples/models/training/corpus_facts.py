"""Words, facts, scenes and codes of the synthetic dialogues; generate_corpus.py makes dialogues of them."""
import random, re, zlib
r = random.Random(0)
SPLIT = 'train'
_alt = re.compile(r'\[([^\[\]]*)\]')
def _pick(m): return r.choice(m.group(1).split('|'))
def X(s):
    while '[' in s: s = _alt.sub(_pick, s)
    return s
def W(s): return s.split()
def P(s): return [x.strip() for x in s.split(',')]
def chance(p): return r.random() < p
def an(w): return ('an ' if w[0].lower() in 'aeiou' else 'a ') + w
def cap(s): return s[:1].upper() + s[1:]
def join(xs, last=' and '): return xs[0] if len(xs) == 1 else ', '.join(xs[:-1]) + last + xs[-1]

GIRLS = W('Nora Mia Lily Anna Ella Ruby Clara Ivy Maya Zoe Rosa Hana Leila Greta Tilda Wren Alma Dora Edith Fern Gwen Hazel Ines Julia Kira Lena Marta Nina Olive Petra Quinn Rita Sara Tara Uma Vera Willa Yara Zelda Amy Beth Cora Daisy Eva Flora Hilda Iris Jade Kate Lucy Molly Nell Opal Pearl Rose Stella Tess Una Violet Wanda Emma Sophie Chloé Zoë Renée Maria Aisha Priya Mei Yuki Fatima Ingrid Astrid Freya Bianca Lucia Paula Carmen Elif Noor Sana Anya Olga Irina Mila Jana Lola Juno Thea Ada Grace Alice')
BOYS = W('Tom Ben Sam Max Leo Finn Otto Hugo Oscar Felix Jack Noah Liam Owen Theo Ravi Omar Ali Kai Ian Karl Luis Marco Nils Pablo Ralf Stan Tim Viktor Will Yusuf Zack Adam Boris Carl Dan Eric Frank George Henry Ivan Jonas Kurt Louis Martin Nico Oliver Peter Rolf Simon Toby Uwe Vince Walter Arlo Bruno Caleb David Elias Fred Gus Harry Isaac Jacob Kenji Lars Milo Ned Olaf Paul Rex Søren Björn José Łukasz Tariq Hassan Chen Amir Diego Mateo Andrei Pavel Emil Anton Jasper Miles Roman Silas Wade Abel')
HELD_NAMES = set(W('Tilda Ines Quinn Opal Elif Juno Rolf Viktor Nils Kenji Silas Bruno Zelda Pavel'))
PETNAMES = W('Pip Biscuit Pepper Socks Luna Rusty Bramble Coco Dot Echo Fig Ginger Honey Inky Jelly Kiwi Maple Noodle Oreo Peanut Radar Shadow Tango Waffle Ziggy Button Clover Dusty Ember Fudge Goose Hopper Muffin Nugget Olive Pickle Rocket Sprout Toffee Whisker Bean Cinder Domino Flash Mango Nimbus Pebble Quill Snap Truffle')
COLOURS = W('red blue green yellow orange purple pink brown black white grey golden silver violet turquoise crimson beige copper scarlet teal cream navy amber bronze')
OBJECTS = W('kite lantern umbrella bicycle teapot drum violin compass basket blanket mirror ladder hammer candle wagon boat hat scarf coat ring bell clock key map book pencil brush bottle bucket chair table lamp pillow cup plate spoon kettle telescope camera guitar flute trumpet piano box chest trunk bag backpack purse wallet watch necklace crown shield ball puppet doll robot rocket train truck car tractor sled canoe tent rope shovel rake broom jar vase button ribbon feather shell marble stone coin stamp postcard letter notebook diary poster painting statue carpet curtain cushion glove boot sandal sock jacket sweater belt whistle torch radio wheel anchor paddle net hook barrel crate anvil globe magnet puzzle balloon mug bowl thimble spinner saddle flag fan tray comb sponge typewriter suitcase hourglass xylophone accordion phone laptop tablet shirt dress apple banana cake pizza pen spaceship sword fork knife plant flower cactus skateboard scooter helmet cookie pumpkin snowman statuette calendar dictionary microscope parachute submarine tricycle trampoline')
PLACES = P('in the attic, under the bed, in the kitchen, in the garden, behind the door, on the shelf, in the barn, in the cellar, by the window, on the roof, in the shed, in the garage, under the stairs, in the hallway, on the balcony, in the library, in the drawer, next to the stove, behind the sofa, in the closet, in the tower, under the old oak, by the pond, near the well, on the porch, in the workshop, in the tree house, at the station, at the harbour, in the office, in the classroom, on the bridge, beside the river, in the greenhouse, under the rug, in the mailbox, on the piano, behind the curtain, in the wardrobe, in the pantry, on top of the fridge, in the boat house, at the museum, in the bathroom, on the desk')
ANIMALS = W('fox bear rabbit owl mouse cat dog wolf hedgehog squirrel badger otter beaver deer duck goose hen horse pony donkey goat sheep pig cow frog toad turtle snail bee butterfly sparrow robin crow raven parrot penguin seal whale dolphin crab lion tiger elephant monkey giraffe camel panda koala mole bat lizard hamster dragon swan lamb kitten puppy dinosaur unicorn kangaroo octopus shark spider snake zebra hippo rhino gorilla eagle pigeon peacock flamingo lobster jellyfish worm ant grasshopper dragonfly ladybird moose wombat sloth llama ferret')
PETS = W('cat dog rabbit hamster parrot turtle pony goat duck hen lizard mouse frog goldfish kitten puppy snail sheep donkey hedgehog')
FOODS = W('soup bread cheese pasta rice pancakes apples pears plums cherries grapes honey toast porridge salad noodles dumplings pizza cake cookies pie jam carrots beans peas potatoes mushrooms corn pumpkin nuts raisins chocolate yogurt butter figs dates melons peaches lemons oranges bananas berries muffins waffles omelettes stew pickles olives lentils biscuits')
TOWNS = W('Lisbon Oslo Cairo Lima Kyoto Dublin Vienna Prague Athens Madrid Berlin Rome Paris London Boston Toronto Sydney Nairobi Delhi Quito Havana Bergen Turin Porto Ghent Malmö Zürich Kraków Riga Tallinn Accra Lagos Denver Austin Hanoi Seoul Manila Perth Leeds York Bristol Cork Lyon Nice Bruges Basel Graz Split Izmir Fez')
JOBS = W('baker teacher doctor nurse farmer sailor painter gardener carpenter librarian pilot driver cook tailor potter dentist singer dancer writer builder plumber florist engineer clown miller weaver fisher juggler astronomer mechanic')
MONTHS = W('January February March April May June July August September October November December')
DAYS = W('Monday Tuesday Wednesday Thursday Friday Saturday Sunday')
SEASONS = W('spring summer autumn winter')
HOBBIES = P('swimming, painting, reading, cooking, running, singing, dancing, knitting, fishing, chess, gardening, skating, cycling, hiking, drawing, juggling, sailing, climbing, baking, pottery, football, tennis, photography, origami')
NUM = W('zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty')
ORD = W('first second third fourth fifth sixth')
ADJ = W('small brave quiet clever gentle curious old young tiny cheerful shy kind lazy proud sleepy hungry lonely patient funny wise bold lucky clumsy friendly careful')
OADJ = W('old shiny tiny heavy dusty broken strange beautiful magic wooden rusty little soft bright plain lost golden secret warm crooked')
SPOTS = P('the forest, the river, the hill, the village, the market, the harbour, the lighthouse, the meadow, the old mill, the castle, the beach, the cave, the garden, the mountain, the lake, the island, the bridge, the library, the railway station, the windmill, the orchard, the desert, the swamp, the school, the farm, the sea, the valley, the tower, the moon')
OPP = [x.split('/') for x in W('hot/cold big/small tall/short fast/slow happy/sad up/down left/right old/new day/night light/dark open/closed wet/dry hard/soft full/empty rich/poor early/late loud/quiet clean/dirty good/bad high/low near/far strong/weak thick/thin wide/narrow deep/shallow heavy/light young/old first/last inside/outside begin/end win/lose push/pull give/take love/hate laugh/cry true/false yes/no north/south east/west above/below front/back sweet/sour smooth/rough sharp/blunt brave/afraid asleep/awake buy/sell come/go float/sink always/never many/few same/different summer/winter morning/evening')]
SOUNDS = [x.split('/') for x in W('cow/moo dog/woof cat/meow duck/quack sheep/baa pig/oink horse/neigh bee/buzz owl/hoot frog/croak hen/cluck lion/roar mouse/squeak crow/caw snake/hiss wolf/howl')]
THINGCOL = [x.split('/') for x in P('grass/green,the sky/blue,snow/white,a banana/yellow,a lemon/yellow,coal/black,a carrot/orange,a ripe tomato/red,milk/white,an emerald/green,a raven/black,a frog/green,chocolate/brown,the sun/yellow,a strawberry/red,an orange/orange')]
LEGS = [x.split('/') for x in P('a dog/four,a spider/eight,a bird/two,a cat/four,an ant/six,a snake/zero,a horse/four,a bee/six,a hen/two,a cow/four')]
HOWDY = P('café, naïve, jalapeño, 你好, привет, 🙂, ☕, 🌙, über, señor, façade, crème brûlée, こんにちは, 🐱, Ærø, déjà vu, smörgåsbord, 🎈, ありがとう, γειά, 🚀, são, žába, ½ cup, 20 °C, €5, “quoted”, naïf, ñandú, 谢谢')

ON = 'b br c ch d dr f fl g gr h j k kr l m n p pl qu r s sh sk st t tr v w y z'.split()
NU = 'a e i o u a e i o ai ee oo ia'.split()
CO = ['', '', '', 'n', 'r', 'l', 's', 'm', 'k', 't', 'x', 'nd', 'sk']
def pseudo(lo=2, hi=3):
    return ''.join(r.choice(ON) + r.choice(NU) for _ in range(r.randint(lo, hi) - 1)) + r.choice(ON) + r.choice(NU) + r.choice(CO)
def held(*k): return zlib.crc32('|'.join(k).encode()) % 17 == 3
def ok(*k):
    return held(*k) == (SPLIT == 'val')
class Who:
    pass
def name(sex=None, novel=0.22):
    sex = sex or r.choice('fm')
    w = Who(); w.sex = sex
    while True:
        if chance(novel): n = cap(pseudo()); 
        elif SPLIT == 'val' and chance(0.4): n = r.choice(sorted(x for x in HELD_NAMES if x in (GIRLS if sex == 'f' else BOYS)))
        else: n = r.choice(GIRLS if sex == 'f' else BOYS)
        if SPLIT == 'train' and n in HELD_NAMES: continue
        break
    w.name = n
    w.he, w.him, w.his = ('she', 'her', 'her') if sex == 'f' else ('he', 'him', 'his')
    w.He, w.His = cap(w.he), cap(w.his)
    return w
def names(k, novel=0.2):
    out = []
    while len(out) < k:
        w = name(novel=novel)
        if all(w.name != o.name for o in out): out.append(w)
    return out
def thing():
    while True:
        o = r.choice(OBJECTS) if chance(0.95) else pseudo()
        c = r.choice(COLOURS)
        if ok(c, o): return c, o
def owned(w, tries=400):
    for _ in range(tries):
        c, o = thing()
        if ok(w.name, o): return c, o
    return c, o
def pet():
    while True:
        a, n = r.choice(PETS), (r.choice(PETNAMES) if chance(0.8) else cap(pseudo()))
        if ok(a, n): return a, n
def digits(lo=2, hi=5): return ''.join(r.choice('0123456789') for _ in range(r.randint(lo, hi)))

# ---- noise on user turns: lower case, missing punctuation, polite padding, slips
def U(s, keep=False):
    s = X(s)
    if not keep:
        if chance(0.12): s = X('[please |hey, |ok, |so, |um, |now |hi! |hey |and |well, |okay, |also, ]') + (s if s[0] == 'I' and not s[1:2].isalpha() else s[0].lower() + s[1:] if not s.split()[0].rstrip('.,!?\'s') in NAMESET else s)
        if s.endswith('?') and chance(0.05): s = s[:-1] + X('[, please?| please|, can you tell me?| again?]')
        if chance(0.22): s = s.lower()
        if chance(0.22): s = s.rstrip('.?!')
        elif chance(0.05): s = s.rstrip('.') + X('[!|...|!!| :)]')
        if chance(0.05): s = s.replace("'", '')
        if chance(0.03) and len(s) > 12:
            i = r.randrange(3, len(s) - 3)
            if s[i].isalpha() and s[i + 1].isalpha() and s[i].islower() and s[i + 1].islower(): s = s[:i] + s[i + 1] + s[i] + s[i + 2:]
    return cap(s) if chance(0.75) else s
NAMESET = set(GIRLS + BOYS)

# ---- facts: each is (statement, acknowledgement, [(question, answer, key)], summary)
GOT = '[Got it.|Okay.|I will remember that.|Noted.|Thanks for telling me.|Understood.|Good to know.|All right.|Sure, I will keep that in mind.|Okay, I have it.]'
def f_name(w=None):
    w = w or name(novel=0.35); n = w.name
    q = '[What is my name?|What\'s my name?|Who am I?|Do you remember my name?|Can you tell me my name?|What did I say my name was?|Say my name.|Do you know who I am?|What am I called?|Tell me my name.|Remember my name?|Do you still know my name?|What do people call me?|What was my name?|My name is?]'
    return dict(kind='name', who=w, state=f'[My name is|I am|I\'m|You can call me|Call me|Hi, I\'m|Hello, my name is|My friends call me|The name is|I am called] {n}.',
        ack=f'[Nice to meet you, {n}!|Hello, {n}!|Hi {n}, nice to meet you.|Got it, {n}.|Good to meet you, {n}!|Welcome, {n}.|Hello {n}! What would you like to do?|Pleased to meet you, {n}.]',
        qs=[(q, f'[Your name is {n}.|You are {n}.|You told me your name is {n}.|Your name is {n}, of course.|You said your name is {n}.|That is easy, you are {n}.]', n)],
        sum=f'your name is {n}', unk=(q, '[You have not told me your name yet.|I do not know your name yet. What is it?|You did not tell me your name.]'))
def f_thing(w=None):
    c, o = owned(w) if w else thing(); p = r.choice(PLACES)
    other = r.choice([x for x in COLOURS if x != c])
    st = f'[I keep {an(c)} {o} {p}.|I have {an(c)} {o}. It is {p}.|There is {an(c)} {o} {p}.|My {o} is {c} and I keep it {p}.|My {c} {o} is {p}.|I put my {c} {o} {p}.|I own {an(c)} {o} and it lives {p}.|I left my {c} {o} {p}.|The {c} {o} {p} is mine.|I hid {an(c)} {o} {p}.|I bought {an(c)} {o} and put it {p}.|My {o} is {p}. It is {c}.]'
    ack = f'[{GOT}|{GOT}|{GOT} Your {o} is {c}.|A {c} {o}, how nice!|{GOT} A {c} {o} {p}.|Your {c} {o} is {p}. {GOT}|That sounds like a nice {o}.|{cap(an(c))} {o} {p}. {GOT}]'
    ack = ack.replace('A amber', 'An amber').replace('A orange', 'An orange')
    qc = (f'[What colour is my {o}?|What color is my {o}?|Which colour is my {o}?|What is the colour of my {o}?|Do you remember what colour my {o} is?|Can you tell me the colour of my {o}?|Tell me the colour of my {o}.|My {o} is what colour?|What colour was my {o}?|What colour is the {o}?|Do you know the colour of my {o}?|What color was the {o}?]',
          f'[Your {o} is {c}.|Your {o} is {c}.|It is {c}.|You said your {o} is {c}.|The {o} is {c}.|Your {o} is {c}, as you told me.]', c)
    qp = (f'[Where is my {o}?|Where do I keep my {o}?|Where did I put my {o}?|Can you tell me where my {o} is?|Where can I find my {o}?|Where is the {o}?|I forgot where my {o} is.|Where did I leave the {o}?|Do you know where my {o} is?|Help me find my {o}.]',
          f'[Your {o} is {p}.|It is {p}.|You keep your {o} {p}.|Your {c} {o} is {p}.|You can find it {p}.|Look {p}.]', p)
    qw = (f'[What do I keep {p}?|What is {p}?|What did I put {p}?|Which thing is {p}?|What can I find {p}?|What did I say is {p}?]',
          f'[You keep {an(c)} {o} {p}.|Your {o} is {p}.|Your {c} {o} is {p}.|{cap(an(c))} {o}.]', o)
    qy = (f'[Is my {o} {c}?|My {o} is {c}, right?|Is the {o} {c}?]', f'[Yes, your {o} is {c}.|Yes, it is {c}.|That is right, your {o} is {c}.]', c) if chance(.5) else \
         (f'[Is my {o} {other}?|My {o} is {other}, right?|Is the {o} {other}?]', f'[No, your {o} is {c}.|No, it is {c}.|Not quite, your {o} is {c}.]', c)
    qq = (f'[What colour is it?|And the colour?|Which colour?]', f'[It is {c}.|Your {o} is {c}.]', c)
    return dict(kind='thing', state=st, ack=ack, qs=[qc, qp, qw, qc, qp, qy], sum=f'your {c} {o} is {p}', obj=o, col=c, follow=qq,
        unk=(qc[0] if chance(.5) else qp[0], f'[You have not told me about your {o}.|I do not know, you have not mentioned a {o}.|You did not tell me about a {o} yet.]'.replace('a umb', 'an umb').replace('a anc', 'an anc').replace('a anv', 'an anv').replace('a hou', 'an hou').replace('a acc', 'an acc')))
def f_pet():
    a, n = pet()
    st = f'[I have {an(a)} named {n}.|My {a} is called {n}.|My {a}\'s name is {n}.|{n} is my {a}.|I live with {an(a)} called {n}.|We have a pet {a}, {n}.|I have a pet. It is {an(a)} called {n}.|I feed my {a} {n} every day.]'
    qn = (f'[What is my {a} called?|What is the name of my {a}?|What is my {a}\'s name?|What\'s my {a}\'s name?|Do you remember my {a}\'s name?|How is my {a} called?|What is my pet called?|What is my pet\'s name?|Tell me the name of my {a}.|Who is my pet?]',
          f'[Your {a} is called {n}.|Your {a}\'s name is {n}.|It is called {n}.|The name of your {a} is {n}.|{n}.|{n} is your {a}.]', n)
    qa = (f'[What animal is {n}?|Who is {n}?|What kind of pet do I have?|Which pet do I have?|What is {n}?|What sort of animal is {n}?|Do I have a pet?|Tell me about {n}.]',
          f'[{n} is your {a}.|You have {an(a)} called {n}.|{n} is {an(a)}.|Your pet is {an(a)} named {n}.]', a)
    return dict(kind='pet', state=st, ack=f'[{GOT}|{n} is a lovely name for {an(a)}.|Say hello to {n} for me!|{GOT} Your {a} is {n}.|I hope {n} is well.|What a nice {a}!|Hello, {n}!]', qs=[qn, qa, qn], sum=f'your {a} is called {n}',
        unk=(qn[0], f'[You have not told me about your {a}.|I do not know that yet.|You did not mention a pet.]'))
FAV = dict(food=FOODS, colour=COLOURS, animal=ANIMALS, season=SEASONS, number=[str(i) for i in range(2, 100)], month=MONTHS, day=DAYS, hobby=HOBBIES, city=TOWNS, drink=W('tea coffee milk cocoa lemonade water juice cider'), flower=W('rose tulip daisy lily poppy violet iris lavender sunflower daffodil'), tree=W('oak pine birch willow maple elm cedar beech'), instrument=W('piano violin drum flute guitar harp trumpet cello'))
def f_fav():
    k = r.choice(list(FAV)); v = r.choice(FAV[k])
    alt = r.choice(['favourite', 'favourite', 'favorite'])
    be = 'are' if k == 'food' and v.endswith('s') else 'is'
    q = f'[What is my {alt} {k}?|What\'s my {alt} {k}?|Which {k} do I like most?|Which {k} do I like best?|Do you remember my {alt} {k}?|Tell me my {alt} {k}.|What {k} do I love?|What was my {alt} {k}?]'
    return dict(kind='fav', state=f'[My {alt} {k} is {v}.|I like {v} best of all. It is my {alt} {k}.|{cap(v)} is my {alt} {k}.|The {k} I like most is {v}.|If I had to pick a {k}, it would be {v}.]', ack=f'[{GOT}|{cap(v)}! Good choice.|I like that too.|{GOT} Your {alt} {k} is {v}.|{cap(v)}, nice.|Good taste!]',
        qs=[(q, f'[Your {alt} {k} is {v}.|It is {v}.|You like {v} best.|You told me it is {v}.|{cap(v)} is your {alt} {k}.]', v)], sum=f'your {alt} {k} is {v}',
        unk=(q, f'[You have not told me your {alt} {k}.|I do not know your {alt} {k} yet.|You did not tell me that yet.]'))
def f_home():
    t = r.choice(TOWNS) if chance(.8) else cap(pseudo())
    q = '[Where do I live?|Which town do I live in?|Where am I from?|What city do I live in?|Do you remember where I live?|Where is my home?|Tell me where I live.]'
    return dict(kind='home', state=f'[I live in {t}.|I am from {t}.|My home is in {t}.|I moved to {t} last year.|I\'m from {t}.|Home is {t} for me.|I come from {t}.]', ack=f'[{GOT}|{t} sounds nice.|{GOT} You live in {t}.|I hope you like {t}.|{t}! I have never been there, I live in your browser.]',
        qs=[(q, f'[You live in {t}.|You are from {t}.|You told me you live in {t}.|Your home is in {t}.|In {t}.]', t)], sum=f'you live in {t}', unk=(q, '[You have not told me where you live.|I do not know where you live.|You did not tell me that.]'))
def f_job():
    j = r.choice(JOBS)
    q = '[What is my job?|What do I do for work?|What\'s my job?|What work do I do?|Do you remember my job?|How do I earn my living?|What am I by trade?]'
    return dict(kind='job', state=f'[I work as {an(j)}.|I am {an(j)}.|My job is {j}.|I\'m {an(j)} by trade.|I have worked as {an(j)} for {r.choice(NUM[2:])} years.]', ack=f'[{GOT}|That must be interesting work.|{GOT} You are {an(j)}.|Being {an(j)} sounds fun.|A good job!]',
        qs=[(q, f'[You are {an(j)}.|You work as {an(j)}.|You told me you are {an(j)}.|Your job is {j}.]', j)], sum=f'you work as {an(j)}', unk=(q, '[You have not told me your job.|I do not know what your job is.]'))
def f_rel():
    rel = r.choice(W('sister brother mother father friend neighbour cousin aunt uncle teacher boss daughter son grandmother grandfather roommate')); 
    w = name('f' if rel in W('sister mother aunt daughter grandmother') else 'm' if rel in W('brother father uncle son grandfather') else None); n = w.name
    q1 = (f'[What is my {rel} called?|What is my {rel}\'s name?|What\'s the name of my {rel}?|Who is my {rel}?|Do you remember my {rel}\'s name?|What is the name of my {rel}?|Name my {rel}.]', f'[Your {rel} is called {n}.|Your {rel}\'s name is {n}.|Your {rel} is {n}.|{n} is your {rel}.]', n)
    q2 = (f'[Who is {n}?|Do you know who {n} is?|How do I know {n}?|Tell me who {n} is.]', f'[{n} is your {rel}.|You told me {n} is your {rel}.|Your {rel}.]', rel)
    return dict(kind='rel', state=f'[My {rel} is called {n}.|{n} is my {rel}.|My {rel}\'s name is {n}.|I have {an(rel)} named {n}.|My {rel} {n} is very [kind|tall|funny|busy|clever].]', ack=f'[{GOT}|{n} sounds nice.|{GOT} Your {rel} is {n}.|Say hello to {n}.|Nice, {n} is a good name.]', qs=[q1, q2, q1], sum=f'your {rel} is called {n}',
        unk=(q1[0], f'[You have not told me about your {rel}.|I do not know your {rel}\'s name.|You did not tell me that.]'))
def plural(o): return o + 'es' if o.endswith(('x', 'sh', 'ch', 's')) else o + 's'
def f_count():
    k = r.randint(2, 20); n = NUM[k] if chance(.7) else str(k); o = plural(r.choice(OBJECTS))
    q = f'[How many {o} do I have?|How many {o} did I say I have?|What is the number of my {o}?|How many {o} are there?|Do you remember how many {o} I have?|Count my {o}.]'
    return dict(kind='count', state=f'[I have {n} {o}.|I own {n} {o}.|There are {n} {o} in my room.|I collected {n} {o}.|I found {n} {o} today.|I have {n} {o} at home.]', ack=f'[{GOT}|{cap(n)} {o}, that is a lot!|{GOT} You have {n} {o}.|{cap(n)} {o}. {GOT}]', qs=[(q, f'[You have {n} {o}.|You told me you have {n} {o}.|{cap(n)} {o}.|There are {n} {o}.]', n)], sum=f'you have {n} {o}',
        unk=(q, f'[You have not told me how many {o} you have.|I do not know that.]'))
def f_age():
    k = str(r.randint(5, 90))
    q = '[How old am I?|What is my age?|Do you remember my age?|Do you know how old I am?|What\'s my age?]'
    return dict(kind='age', state=f'[I am {k} years old.|I\'m {k}.|My age is {k}.|I turned {k} this year.|I just turned {k}.]', ack=f'[{GOT}|{k} is a fine age.|{GOT} You are {k}.]', qs=[(q, f'[You are {k} years old.|You are {k}.|You told me you are {k}.]', k)], sum=f'you are {k} years old', unk=(q, '[You have not told me your age.|I do not know how old you are.]'))
def f_bday():
    m, d = r.choice(MONTHS), r.randint(1, 28)
    q = '[When is my birthday?|When do I celebrate my birthday?|What day is my birthday?|Do you remember my birthday?|When was I born?]'
    return dict(kind='bday', state=f'[My birthday is on {m} {d}.|I was born on {m} {d}.|My birthday is {m} {d}.|I celebrate my birthday on {m} {d}.]', ack=f'[{GOT}|{m} {d}, I will remember.|{GOT} {m} is a nice month.]', qs=[(q, f'[Your birthday is on {m} {d}.|It is on {m} {d}.|You were born on {m} {d}.|You told me it is {m} {d}.]', f'{m} {d}')], sum=f'your birthday is on {m} {d}', unk=(q, '[You have not told me your birthday.|I do not know when your birthday is.]'))
def item(): return r.choice(r.choice([OBJECTS, FOODS, ANIMALS, COLOURS, OBJECTS])) if chance(.9) else pseudo()
def items(lo=2, hi=5):
    k = r.randint(lo, hi); src = r.choice([OBJECTS, FOODS, ANIMALS, COLOURS, NUM[1:], None, GIRLS, TOWNS]); out = []
    while len(out) < k:
        x = r.choice(src) if src else item()
        if x in HELD_NAMES and SPLIT == 'train': continue
        if x not in out: out.append(x)
    return out
def f_list():
    xs = items(3, 5); kind = r.choice(['shopping list', 'packing list', 'list', 'to-do list', 'word list'])
    L = ', '.join(xs); L2 = join(xs)
    i = r.randrange(len(xs)); 
    qs = [(f'[What is on my {kind}?|What was on my {kind}?|Tell me my {kind}.|Read me my {kind}.|What did I put on my {kind}?|Can you repeat my {kind}?|Which things are on my {kind}?]', f'[Your {kind} has {L2}.|On your {kind}: {L}.|{cap(L)}.|You have {L2} on your {kind}.]', xs[0]),
          (f'[What is the {ORD[i]} thing on my {kind}?|Which is the {ORD[i]} item on my {kind}?|What is the {ORD[i]} item?|Name the {ORD[i]} item on my {kind}.]', f'[The {ORD[i]} item is {xs[i]}.|It is {xs[i]}.|{cap(xs[i])}.]', xs[i]),
          (f'[How many things are on my {kind}?|How many items are on my {kind}?|How long is my {kind}?]', f'[There are {NUM[len(xs)]} things on your {kind}.|Your {kind} has {NUM[len(xs)]} items.]', NUM[len(xs)]),
          (f'[What is the last thing on my {kind}?|What is the last item on my {kind}?|Which item is last on my {kind}?]', f'[The last item is {xs[-1]}.|It is {xs[-1]}.]', xs[-1])]
    return dict(kind='list', state=f'[My {kind} is {L2}.|My {kind}: {L}.|Please remember my {kind}: {L}.|Put {L2} on my {kind}.|On my {kind} I have {L2}.|Here is my {kind}: {L}.]', ack=f'[{GOT}|{GOT} Your {kind} has {L2}.|{NUM[len(xs)].capitalize()} things. {GOT}|I will remember: {L}.]', qs=qs, sum=f'your {kind} has {L2}', unk=(qs[0][0], f'[You have not given me a {kind}.|I do not have a {kind} from you yet.]'))
FACTS = [f_name, f_thing, f_thing, f_thing, f_pet, f_fav, f_fav, f_home, f_job, f_rel, f_count, f_age, f_bday, f_list]

# ---- third person scenes and codes
def scene():
    k = r.randint(2, 4); ws = names(k); used = set(); S = []; Q = []
    for w in ws:
        while True:
            c, o = owned(w)
            if o not in used: used.add(o); break
        p = r.choice(PLACES); n = w.name; t = r.randrange(4)
        if t == 0:
            S.append(f'{n} [has|owns|bought|found|likes|carries] {an(c)} {o}.')
            Q += [(f'[What does {n} have?|What belongs to {n}?|Which thing is {n}\'s?]', f'[{n} has {an(c)} {o}.|{cap(an(c))} {o}.|{n} has the {c} {o}.]', o)]
        elif t == 1:
            S.append(f'{n} [keeps|put|left|hid] {an(c)} {o} {p}.')
            Q += [(f'[Where is {n}\'s {o}?|Where did {n} put the {o}?|Where can I find {n}\'s {o}?|Where is the {o}?]', f'[{n}\'s {o} is {p}.|It is {p}.|The {o} is {p}.]', p)] * 2
        elif t == 2: S.append(f'{n}\'s {o} is {c}.')
        else: S.append(f'The {c} {o} [belongs to {n}|is {n}\'s].')
        Q += [(f'[What colour is {n}\'s {o}?|What color is {n}\'s {o}?|Which colour is the {o}?|What is the colour of {n}\'s {o}?|Tell me the colour of the {o}.]', f'[{n}\'s {o} is {c}.|It is {c}.|The {o} is {c}.]', c),
              (f'[Who has the {o}?|Who owns the {o}?|Whose {o} is it?|Who does the {o} belong to?|Who has the {c} {o}?|Whose is the {c} {o}?|Who has {an(c)} {o}?]', f'[{n} has the {o}.|The {o} belongs to {n}.|{n}.|{n} has the {c} {o}.]', n)]
    r.shuffle(S); return ' '.join(S), Q
KEYN = W('box door locker gate safe room drawer vault cabinet chest suitcase garage bike shed')
def keyname():
    k = r.choice(KEYN); t = r.random()
    return f'{k} {r.choice(NUM[1:13])}' if t < .4 else f'the {r.choice(COLOURS)} {k}' if t < .65 else f'{k} {r.choice("ABCDEFGHJK")}' if t < .8 else f'the {k}' if t < .9 else f'{k} {r.randint(1, 60)}'
def codes():
    k = r.randint(1, 5); d = {}; word = r.choice(['code', 'code', 'number', 'password', 'pin', 'secret word'])
    while len(d) < k:
        d[keyname()] = digits(3, 5) if word in ('code', 'number', 'pin') else (pseudo() if chance(.5) else r.choice(OBJECTS + ANIMALS))
    st = r.choice(['The {w} for {a} is {v}.', 'The {w} of {a} is {v}.', '{A} has the {w} {v}.', '{A}: {v}.', '{A} opens with {w} {v}.', 'Use {w} {v} for {a}.'])
    S = ' '.join(X(st).replace('{w}', word).replace('{a}', a).replace('{A}', cap(a)).replace('{v}', v) for a, v in d.items())
    Q = []
    for a, v in d.items():
        Q += [(f'[What is the {word} for {a}?|What is the {word} of {a}?|Which {word} opens {a}?|What\'s the {word} for {a}?|Tell me the {word} for {a}.|I need the {word} for {a}.|{cap(word)} for {a}?|Do you remember the {word} for {a}?|How do I open {a}?]', f'[The {word} for {a} is {v}.|The {word} for {a} is {v}.|It is {v}.|Use {v}.]', v)] * 2
        Q += [(f'[What opens with {v}?|What is {v} for?|Which one has the {word} {v}?|What does {v} open?]', f'[{v} is the {word} for {a}.|That is the {word} for {a}.]', a)]
    return S, Q, d
def kv():
    k = r.randint(2, 6); ks = items(k, k); t = r.randrange(3); d = {}
    for x in ks: d[x] = str(r.randint(1, 99)) if t == 0 else pseudo() if t == 1 else item()
    sep = r.choice([' = ', ': ', ' is ', ' means ', ' -> '])
    S = r.choice([', ', '; ', '. ', '\n']).join(a + sep + v for a, v in d.items()); 
    if chance(.4): S = X('[Here are some pairs|Remember these|A small table|Learn this|Take note]: ') + S
    Q = [(f'[What is {a}?|{a}?|What goes with {a}?|What is the value of {a}?|Look up {a}.|What does {a} mean?|And {a}?|{a}{sep.rstrip()}]', f'[{cap(a)}{sep}{v}.|{v}|{cap(v)}.|It is {v}.]' if sep != ' -> ' else f'{a} -> {v}', v) for a, v in d.items()]
    return S, Q
