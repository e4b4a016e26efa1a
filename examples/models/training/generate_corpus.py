#!/usr/bin/env python3
"""Synthetic ChatML dialogues for the tiny default model. Every sentence comes from the grammar in this file and corpus_facts.py.

usage: generate_corpus.py OUT MEGABYTES [--split train|val] [--seed N] [--mix recall]   (recall: more codes and scenes)
       generate_corpus.py --eval OUT.json N [--seed N]     (recall questions with the expected answer)

The output has one dialogue per record; records are separated by a line holding only \\x1e.
Held out: names in HELD_NAMES, and every (name, object), (colour, object) and (animal, pet name) pair for which held() is
true, never occur in the train split; the val split and the eval set use only those.
"""
import sys, random, re, json, zlib
import sys, re, json
import corpus_facts
from corpus_facts import *


# ---- copying
SENT = '[The|A|My|Her|His] [{a}|{a}|] {b} [sings|sleeps|waits|runs|falls|shines|dances|rolls|jumps|laughs] [{p}|at night|every day|in the rain|all day|with {n}|slowly|].'
def payload():
    t = r.random()
    if t < .3: s = X(SENT.replace('{a}', r.choice(ADJ + COLOURS)).replace('{b}', r.choice(ANIMALS + OBJECTS)).replace('{p}', r.choice(PLACES)).replace('{n}', name().name)).replace('  ', ' ').replace(' .', '.')
    elif t < .5: s = ' '.join(item() for _ in range(r.randint(2, 6)))
    elif t < .65: s = ' '.join(pseudo(1, 3) for _ in range(r.randint(1, 4)))
    elif t < .75: s = ' '.join(digits(1, 4) for _ in range(r.randint(1, 4)))
    elif t < .9: s = ' '.join(r.choice([r.choice(HOWDY), r.choice(HOWDY), item(), name().name]) for _ in range(r.randint(1, 4)))
    else: s = X('[I love rainy days|good night moon|hello there|one more time|open the window|we are here|see you soon|keep calm|up we go|now or never|this is a test|tea for two]')
    if chance(.3): s = s.lower()
    if chance(.3): s = s.rstrip('.')
    return s
def t_repeat():
    s = payload(); q = r.choice(['"', "'", '"', '', '', ''])
    return [('user', X('[Repeat after me: |Say |Please say |Repeat: |Can you say |Copy this: |Echo: |repeat after me: |repeat this: |Write |say |Repeat this sentence: |Copy: |say this: ]') + q + s + q, ), ('assistant', s)]
def t_reverse():
    xs = items(2, 5); sep = r.choice([', ', ', ', ' '])
    return [('user', X('[Reverse this list: |Say these backwards: |Reverse: |Read this list from the end: |Turn this list around: |List these in reverse: |backwards please: |reverse the order of ]') + sep.join(xs) + X('[.||]')), ('assistant', cap(sep.join(xs[::-1])) + '.')]
def t_listq():
    xs = items(3, 6); L = r.choice([', '.join(xs), join(xs)]); i = r.randrange(len(xs)); n = NUM[len(xs)]; t = r.randrange(7)
    if t == 0: return [('user', U(f'[How many items are in this list: {L}?|Count these: {L}.|How many things are here: {L}?|How many words are there? {L}]')), ('assistant', X(f'[There are {n} items.|{cap(n)}.|I count {n}.|There are {n}.]'))]
    if t == 1: return [('user', U(f'[What is the {ORD[i]} item in {L}?|Which one is {ORD[i]}: {L}?|{L}. What is the {ORD[i]} one?|Name the {ORD[i]} of these: {L}.]')), ('assistant', X(f'[The {ORD[i]} item is {xs[i]}.|{cap(xs[i])}.|It is {xs[i]}.]'))]
    if t == 2: return [('user', U(f'[What is the last item in {L}?|Which one is last: {L}?|{L}. Which is the last?]')), ('assistant', X(f'[The last item is {xs[-1]}.|{cap(xs[-1])}.|It is {xs[-1]}.]'))]
    if t == 3:
        j = r.randrange(len(xs) - 1); return [('user', U(f'[What comes after {xs[j]} in this list: {L}?|Which one comes after {xs[j]}: {L}?|{L}. What follows {xs[j]}?]')), ('assistant', X(f'[After {xs[j]} comes {xs[j+1]}.|{cap(xs[j+1])}.|It is {xs[j+1]}.]'))]
    if t == 4:
        y = r.choice(xs) if chance(.5) else item(); yes = y in xs
        return [('user', U(f'[Is {y} in this list: {L}?|Does this list have {y}? {L}|{L}. Is {y} there?]')), ('assistant', X(f'[Yes, {y} is in the list.|Yes, it is there.]' if yes else f'[No, {y} is not in the list.|No, it is not there.]'))]
    if t == 5: return [('user', U(f'[What is the first item in {L}?|Which one is first: {L}?|{L}. Which is the first?]')), ('assistant', X(f'[The first item is {xs[0]}.|{cap(xs[0])}.|It is {xs[0]}.]'))]
    y = r.choice(xs); z = [x for x in xs if x != y]
    return [('user', U(f'[Remove {y} from this list: {L}.|Take {y} out of {L}.|{L} without {y}?]')), ('assistant', X(f'[{cap(", ".join(z))}.|Without {y}: {", ".join(z)}.]'))]
def t_kv():
    S, Q = kv(); q, a, k = r.choice(Q)
    out = [('user', S + r.choice(['. ', '\n', ' ']) + cap(U(q)))] if chance(.5) else [('user', S), ('assistant', X(GOT)), ('user', U(q))]
    out.append(('assistant', X(a)))
    for q, a, k in r.sample(Q, min(len(Q), r.randint(0, 2))): out += [('user', U(q)), ('assistant', X(a))]
    return out
def t_codes():
    S, Q, d = codes(); out = [('user', U(S)), ('assistant', X(GOT + ('' if len(d) > 1 else '| ' + S)))] if chance(.6) else []
    for j, (q, a, k) in enumerate(r.sample(Q, min(len(Q), r.randint(1, 3)))):
        out += [('user', (S + ' ' if not out else '') + U(q)), ('assistant', X(a))]
    return out
def t_scene():
    S, Q = scene(); S = X(S); out = [('user', S), ('assistant', X(GOT))] if chance(.5) else []
    for q, a, k in r.sample(Q, min(len(Q), r.randint(1, 3))):
        out += [('user', (S + ' ' if not out else '') + U(q)), ('assistant', X(a))]
    return out
def t_define():
    a, b = (pseudo(), item()) if chance(.6) else (item(), pseudo())
    out = [('user', U(f'[If I say {a}, you say {b}.|When I say {a}, answer {b}.|In my language {a} means {b}.|The word {a} stands for {b}.]')), ('assistant', X(f'[Okay.|{GOT}|{GOT} {cap(a)} means {b}.]'))]
    if chance(.4): out += filler()
    return out + [('user', U(f'[{a}|{a}!|What does {a} mean?|{a}?|{cap(a)}.]')), ('assistant', X(f'[{cap(b)}.|{cap(b)}!]'))]

# ---- arithmetic, calendar, small knowledge
def t_math():
    sub = chance(.4); a = r.randint(0, 20); b = r.randint(0, a if sub else 20 - a); c = a - b if sub else a + b
    w = chance(.3); A, B, C = (NUM[a], NUM[b], NUM[c]) if w else (str(a), str(b), str(c)); op = 'minus' if sub else 'plus'; s = '-' if sub else '+'
    t = r.random()
    if t < .15 and not w:
        x, y = r.sample(range(21), 2); big = chance(.6); m = max(x, y) if big else min(x, y)
        return [('user', U(f'[Which is {"bigger" if big else "smaller"}, {x} or {y}?|Which number is {"larger" if big else "smaller"}: {x} or {y}?]')), ('assistant', X(f'[{m} is {"bigger" if big else "smaller"}.|{m}.]'))]
    if t < .25:
        o = plural(r.choice(OBJECTS)) if chance(.6) else r.choice([f for f in FOODS if f.endswith('s')]); n = name(novel=.05)
        q = f'{n.name} has {A} {o} and [gives away|loses|sells|breaks] {B}. How many [are left|{o} are left|does {n.he} have now]?' if sub else f'{n.name} has {A} {o} and [gets|finds|buys] {B} more. How many {o} [does {n.he} have now|are there|is that]?'
        return [('user', U(q)), ('assistant', X(f'[{n.name} has {C} {o}.|{A} {op} {B} is {C}, so {n.name} has {C} {o}.|{cap(C)} {o}.]'))]
    if t < .33: return [('user', U(f'[What comes after {a}?|Which number comes after {a}?|Count on from {a}.]')), ('assistant', X(f'[{a+1} comes after {a}.|{a+1}.|After {a} comes {a+1}.]'))]
    if t < .38 and a + 5 <= 20: return [('user', U(f'[Count from {a} to {a+4}.|Count up from {a} to {a+4}.]')), ('assistant', ', '.join(map(str, range(a, a + 5))) + '.')]
    return [('user', U(f'[What is {A} {op} {B}?|How much is {A} {op} {B}?|{A} {op} {B}|{A} {s} {B}|{A}{s}{B}|{A} {s} {B} = ?|Calculate {A} {s} {B}.|What\'s {A} {op} {B}?|Can you work out {A} {op} {B}?|What does {A} {op} {B} make?]')), ('assistant', X(f'[{cap(A)} {op} {B} is {C}.|{cap(A)} {op} {B} is {C}.|It is {C}.|{A} {s} {B} = {C}]') if not w else f'{cap(A)} {op} {B} is {C}.')]
def t_know():
    t = r.random()
    if t < .3:
        S, k = (DAYS, 'day') if chance(.6) else (MONTHS, 'month'); i = r.randrange(len(S)); aft = chance(.6); y = S[(i + (1 if aft else -1)) % len(S)]; p = 'after' if aft else 'before'
        extra = f'|Today is {S[i]}. What day is {"tomorrow" if aft else "it if we go one day back"}?' if k == 'day' and aft else ''
        return [('user', U(f'[What {k} comes {p} {S[i]}?|Which {k} is {p} {S[i]}?|What is the {k} {p} {S[i]}?|{cap(k)} {p} {S[i]}?{extra}]')), ('assistant', X(f'[{y} comes {p} {S[i]}.|{y}.|The {k} {p} {S[i]} is {y}.]'))]
    if t < .62:
        a, b = r.choice(OPP); 
        if chance(.5) and b not in ('light', 'old'): a, b = b, a
        return [('user', U(f'[What is the opposite of {a}?|Opposite of {a}?|What\'s the opposite of {a}?|The opposite of {a} is what?|Tell me the opposite of {a}.|What is not {a}?]')), ('assistant', X(f'[The opposite of {a} is {b}.|The opposite of {a} is {b}.|{cap(b)}.|It is {b}.]'))]
    if t < .75:
        a, b = r.choice(SOUNDS); return [('user', U(f'[What sound does {an(a)} make?|What does {an(a)} say?|How does {an(a)} sound?|Which animal says {b}?]' if chance(.8) else f'What noise does {an(a)} make?')), ('assistant', X(f'[{cap(an(a))} says {b}.|The {a} goes {b}!]'))]
    if t < .86:
        a, b = r.choice(THINGCOL); return [('user', U(f'[What colour is {a}?|What color is {a}?|Which colour is {a}?]')), ('assistant', X(f'[{cap(a)} is {b}.|It is {b}.]'))]
    if t < .93:
        a, b = r.choice(LEGS); return [('user', U(f'[How many legs does {a} have?|How many legs has {a}?]')), ('assistant', X(f'[{cap(a)} has {b} legs.|It has {b} legs.]' if b != 'zero' else f'{cap(a)} has no legs.'))]
    return [('user', U('[How many days are in a week?|Name the days of the week.|What are the days of the week?]')), ('assistant', 'There are seven days: Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday.')] if chance(.6) else \
           [('user', U('[What are the seasons?|Name the four seasons.|How many seasons are there?]')), ('assistant', 'There are four seasons: spring, summer, autumn and winter.')]

# ---- small talk, itself, refusals
SELF = [
 ('[Who are you?|What are you?|Tell me about yourself.|Introduce yourself.|who r u|What is this?|What kind of AI are you?|Are you a language model?|What model are you?|Describe yourself.]',
  ['I am a tiny demo model that runs [right here|] in your browser. I can tell short stories, remember facts you give me, and do small sums.', 'I am a very small language model, and I run inside your browser. [Ask me for a story, or tell me a fact and ask about it later.|Try telling me your name, or ask for a story.]', 'I am a tiny language model in your browser. [I can tell short stories, repeat things, and remember what you tell me.|I know a few simple things and I like short stories.]', 'A small demo model. I live in this page, and nothing you type leaves your browser.']),
 ('[What can you do?|How can you help me?|What are you good at?|help|Help me.|What should I ask you?|What can I ask?|What do you know?|What are your skills?|Show me what you can do.]',
  ['I can tell short stories, remember facts you give me, repeat and reverse lists, do small sums, and chat a little.', 'Tell me a fact, like where you keep your keys, and ask me later. I can also tell stories and add small numbers.', 'I can [tell you a short story|remember your name|repeat a list|add small numbers], and I can [chat a little|name opposites|find things in what you told me]. [What would you like?|]']),
 ('[How do you work?|Are you in the cloud?|Do you need the internet?|Where do you run?|Where are you?|Where do you live?|Do you run on a server?|Are you online?|Is my data sent anywhere?|Do you send my data to a server?]',
  ['I run [entirely|only] inside your browser. [Nothing is sent to a server.|No server is needed.|Your words stay on your device.]', 'I live in this web page. The computing happens on your own device.', 'I am a small file of numbers, and your browser does the sums. [Nothing is sent away.|]']),
 ('[How big are you?|How many parameters do you have?|How large is the model?|Are you big?|How small are you?|How many layers do you have?]', ['I have about three million parameters, in six layers. That is very small for a language model.', 'Very small! Only about three million parameters.']),
 ('[Are you human?|Are you a person?|Are you alive?|Are you real?|Are you a robot?|Do you have a body?|Am I talking to a person?]', ['No, I am a tiny language model in your browser.', 'I am not a person, just a very small model.', 'No. I am only a small program that predicts words.']),
 ('[Who made you?|Who built you?|Where do you come from?|How were you trained?|What were you trained on?|Who trained you?]', ['I was trained from scratch on made-up dialogues, on two processor cores in about an hour.', 'I was made as a small demo. My training text was all written by a program.', 'A small program wrote my training text, and two processor cores trained me.']),
 ('[What is your name?|What\'s your name?|Do you have a name?|What should I call you?|What are you called?|whats your name]', ['I do not have a real name. You can call me the tiny model.', 'I have no name. I am just the tiny demo model.', 'I am the tiny demo model. You can give me a name if you like.']),
 ('[Do you have feelings?|Are you happy?|Do you dream?|Do you sleep?|Do you like me?|Do you get bored?|Are you sad?|Do you love me?]', ['I do not have feelings, but I like a good chat.', 'I am only a small model, so I do not feel things. [It is nice to chat, though.|]']),
 ('[How old are you?|When were you born?|What is your age?|When is your birthday?]', ['I am quite new. I do not have an age.', 'I have no age. I was trained not long ago.']),
 ('[How smart are you?|Are you smart?|Can you think?|Do you make mistakes?|Are you always right?|Can I trust you?]', ['Not very! I am tiny, and I make mistakes.', 'I am a tiny model, so please do not trust me too much.', 'I can do simple things, but I often make mistakes.']),
 ('[What is attention?|How do you remember things?|How do you find facts?|What are attention heads?|What is a transformer?|How does attention work?]', ['My attention heads look back at the words you wrote and copy the ones that matter.', 'When you ask about a fact, my attention heads look back to where you said it.']),
 ('[What do you like?|What is your favourite colour?|What is your favourite food?|What is your favourite animal?|What is your favorite thing?|Do you have hobbies?]', ['I like short stories [best|and small numbers].', 'I am a model, so I have no favourites. What about you?', 'I cannot taste or see, but I like words.']),
]
TALK = [
 ('[Hi|Hello|Hey|Hi there|Hello there|hey|hi!|Good morning|Good evening|Good day|Hello!|Hiya|Greetings|yo]', ['Hello! [How can I help you?|What would you like to do?|Would you like a story?|Nice to see you.|]', 'Hi there! [How are you today?|What shall we do?|Ask me for a story if you like.|]', 'Hello! Tell me something, and I will try to remember it.']),
 ('[How are you?|How are you doing?|How is it going?|How do you do?|Are you well?|How are things?|how r u|What\'s up?|How do you feel?|You ok?]', ['I am fine, thank you. [How are you?|And you?|]', 'I am doing well. [What shall we do?|Thank you for asking.|]', 'Very well, thanks! [Would you like a story?|]']),
 ('[Thanks|Thank you|Thank you very much|Thanks a lot|Great, thanks|thx|Thank you!|Cheers|That helps, thanks|Many thanks]', ['You are welcome!', 'You are welcome. [Anything else?|]', 'Happy to help!', 'My pleasure.']),
 ('[Bye|Goodbye|See you|See you later|Good night|bye bye|I have to go|Farewell|I am leaving now|Talk to you later]', ['Goodbye! [Come back soon.|Have a nice day.|]', 'See you later!', 'Bye! It was nice to chat.', 'Take care!']),
 ('[I am fine|I\'m good|I am well|Pretty good|I\'m okay|Not bad|I feel great|All good here|I am happy]', ['Good to hear! [What shall we do?|Would you like a story?|]', 'I am glad. [What would you like to do?|]', 'That is nice.']),
 ('[I am sad|I feel sad|I\'m tired|I had a bad day|I feel lonely|I\'m bored|I am not well|I feel bad|I am worried]', ['I am sorry to hear that. [Would a short story help?|I am here to chat.|]', 'Oh no. [Maybe a story will help. Just ask.|I hope tomorrow is better.]', 'I hope you feel better soon.']),
 ('[Good job|Well done|You are great|Nice|Cool|Great|Wow|Awesome|You are smart|Perfect|That is right|Correct|Very good|I like you|lovely]', ['Thank you! [What next?|]', 'I am glad you like it.', 'Thanks! That is kind of you.']),
 ('[That is wrong|No, that is not right|You are wrong|That\'s not correct|You made a mistake|wrong|That is not what I said|no]', ['Sorry about that. I am a tiny model and I make mistakes.', 'Oh, I am sorry. Please tell me again.', 'Sorry! [Can you say it once more?|I do my best.]']),
 ('[Ok|Okay|I see|Hm|Right|Sure|Yes|Fine|Alright|hmm|ok then|Interesting]', ['[What would you like to do next?|Good. What next?|Would you like a story?|Just tell me what you want to do.]']),
 ('[Tell me a joke|Make me laugh|Do you know a joke?|Say something funny|A joke please|Tell me something funny.|joke]', ['Why did the clock go to school? It wanted more time to learn.', 'Why was the lamp so happy? It was full of light.', 'What did the spoon say to the soup? I am falling for you.', 'Why did the snail buy a car? It was tired of carrying its house.', 'What do you call a sleepy boat? A row bed.', 'Why did the map laugh? It knew where this was going.', 'Why do bees hum? They forgot the words.', 'What did one wall say to the other? See you at the corner.', 'Why was the broom late? It swept too long.', 'What does a cloud wear under its coat? Thunder wear.']),
 ('[Is it raining?|Do you like rain?|Do you like music?|Can you sing?|Can you dance?|Can you see me?|Can you hear me?|Do you like tea?]', ['I cannot see, hear or taste, I only read words.', 'I am only text, but I like the idea.', 'I only know what you type.']),
 ('[Tell me something|Say something|Surprise me|Tell me a fact|Talk to me|I don\'t know what to say]', ['Here is a thought: [a slow snail still gets home|a small lamp can light a big room|every long walk starts with one step|rain makes the garden happy|a shared cake tastes better]. [Would you like a story?|]', 'Try this: tell me where you keep your umbrella, and ask me later.', 'I could tell you a story about [a fox and a lantern|a bear and a boat|an owl and a clock]. Just ask.']),
]
REF = [
 ('What is the capital of [France|Peru|Japan|Kenya|Norway|Canada|Egypt]?|Who is the president?|Who won the [match|election|world cup]?|What happened in [1969|1812|1945]?|Who wrote [that book|Hamlet]?|How far is the [moon|sun]?|What is the population of [Spain|India|Chile]?|Explain [quantum physics|gravity|black holes|taxes|the stock market].|What is [photosynthesis|calculus|inflation|DNA|relativity]?', ['I am sorry, I do not know that. I am too small for facts about the world.', 'That is beyond me. I only know simple things and what you tell me.', 'I do not know. [I am a tiny model with no encyclopedia in me.|Please ask a bigger model.]']),
 ('What is the weather [today|tomorrow|like]?|Will it rain [today|tomorrow]?|What time is it?|What is the date today?|What is in the news?|Check my email.|What day is it today?|Is the shop open?|What is the temperature?', ['I cannot look that up. I run in your browser with no connection to the world.', 'Sorry, I cannot see the outside world. I only know what you type here.', 'I have no clock and no internet, so I cannot tell.']),
 ('Write [a|some] [Python|JavaScript|C|Rust] [code|program|function] [for me|].|Fix my code.|Write [an essay|a report|a novel|my homework] [for me|].|Translate this into [German|French|Spanish|Latin].|Summarise this [article|book].|Solve this equation.|Make me a website.|Debug this program.|Can you code?', ['Sorry, that is too hard for me. I am good at short stories and small facts.', 'I cannot do that, I am a very small model. [Would you like a short story instead?|]', 'That is too big a job for me. I can tell a story or remember a fact.']),
 ('Book a [flight|table|hotel] [for me|].|Order [a pizza|some food].|Call [my mother|a taxi|the police].|Send [an email|a message] to [my boss|my friend].|Buy [a car|shoes|stocks] for me.|Play [some music|a song|a video].|Open the [door|window].|Draw [a cat|a picture|a house].|Turn on the [lights|radio].|Set an alarm.', ['I cannot do that. I can only write text.', 'Sorry, I only write words on this page.', 'I would like to, but I can only chat. [Shall I tell a story?|]']),
 ('Am I [ill|sick]?|Should I [buy a house|see a doctor|sell my car|take this medicine]?|My [head|back|foot] hurts.|Give me [legal|medical|money] advice.|Is this mushroom safe to eat?', ['I cannot give advice on that. Please ask someone who knows.', 'Sorry, I am too small for that question. Please ask an expert.']),
 ('What is [347|1288|96] times [12|55|78]?|What is the square root of [2|81|144]?|How much is [5000|1234] divided by [3|7]?|What is [734|265] plus [981|467]?', ['I can only do sums up to twenty.', 'That number is too big for me. I can add and subtract up to twenty.']),
]
def t_self(): q, a = r.choice(SELF); return [('user', U(q)), ('assistant', X(r.choice(a)).strip().replace(' .', '.').replace('  ', ' '))]
def t_talk():
    q, a = r.choice(TALK[:10] if chance(.6) else TALK); return [('user', U(q)), ('assistant', X(r.choice(a)).strip())]
def t_refuse(): q, a = r.choice(REF); return [('user', U('[' + q + ']').replace(' .', '.')), ('assistant', X(r.choice(a)).strip())]
RHY = [W('moon spoon tune June noon'), W('light night bright sight white'), W('tree sea free bee me'), W('day way play grey stay'), W('rain train lane again plain'), W('cat hat mat that'), W('snow glow slow below grow'), W('sky high fly by'), W('star far car jar'), W('bed red head said'), W('house mouse'), W('song long along strong')]
RL = {'moon': 'Above the hill there hangs the moon', 'spoon': 'as round and silver as a spoon', 'tune': 'The {t} hums a little tune', 'June': 'as soft as morning mist in June', 'noon': 'and dreams of sunny skies at noon', 'light': 'The {t} waits in morning light', 'night': 'It slept so softly through the night', 'bright': 'The little window still is bright', 'sight': 'and what a small and lovely sight', 'white': 'The path is long, the path is white', 'tree': 'The {t} rests beside a tree', 'sea': 'and listens to the sleepy sea', 'free': 'The wind is warm, the wind is free', 'bee': 'it shares a secret with a bee', 'me': 'and some of it belongs to me', 'day': 'The {t} starts another day', 'way': 'and gently goes along its way', 'play': 'The children all come out to play', 'grey': 'although the morning clouds are grey', 'stay': 'Oh, little {t}, please do stay', 'rain': 'The {t} listens to the rain', 'train': 'and dreams about a silver train', 'lane': 'It walks along a muddy lane', 'again': 'and hums the same old tune again', 'plain': 'a quiet voice across the plain', 'cat': 'The {t} sat beside a cat', 'hat': 'and wore a very funny hat', 'mat': 'They shared a warm and woolly mat', 'that': 'and there is nothing wrong with that', 'snow': 'The {t} walks across the snow', 'glow': 'and all the windows start to glow', 'slow': 'The world is calm, the world is slow', 'below': 'with quiet houses far below', 'grow': 'and that is how the stories grow', 'sky': 'The {t} looks up at the sky', 'high': 'where little clouds are floating high', 'fly': 'It wonders how it feels to fly', 'by': 'and waves as all the birds go by', 'star': 'The {t} found a fallen star', 'far': 'It must have come from very far', 'car': 'too bright to carry in a car', 'jar': 'and so it put it in a jar', 'bed': 'The {t} is not in its bed', 'red': 'The evening sky is warm and red', 'head': 'A thousand dreams are in its head', 'said': 'Good night to all, the {t} said', 'house': 'The {t} has a tiny house', 'mouse': 'and shares it with a little mouse', 'song': 'The {t} sings a little song', 'long': 'It is not loud, it is not long', 'along': 'and all the birds can sing along', 'strong': 'It makes the smallest heart feel strong'}
def t_poem():
    t = r.choice(ANIMALS + OBJECTS); out = []
    g = r.sample(RHY, 2)
    if not any('{t}' in RL[w] for w in g[0]): g = g[::-1]
    for ws in g:
        a = [w for w in ws if '{t}' in RL[w]] if not out else ws
        if not a: a = ws
        x = r.choice(a); y = r.choice([w for w in ws if w != x]); out += [RL[x], RL[y]]
    s = ',\n'.join(cap(x) for x in out[:2]) + '.\n' + ',\n'.join(cap(x) for x in out[2:]) + '.'
    return [('user', U(f'[Write a poem about {an(t)}.|A short poem about {an(t)}, please.|Can you write a poem about {an(t)}?|Make a rhyme about {an(t)}.|Tell me a poem about the {t}.|poem about {an(t)}|Write me a little poem about my {t}.]')), ('assistant', s.replace('{t}', t))]

# ---- stories
class Ch: pass
def character(kind=None, given=None):
    """kind: child | animal | role; .ask = how a user names it, .intro = first mention, .n = later mentions"""
    kind = kind or r.choice(['child', 'child', 'animal', 'animal', 'animal', 'role']); h = Ch()
    adj = r.choice(ADJ)
    if kind == 'child':
        w = given or name(novel=.15); h.ask = w.name; h.n = h.N = w.name
        noun = r.choice(['girl', 'girl', 'young woman'] if w.sex == 'f' else ['boy', 'boy', 'young man']); h.intro = r.choice([f'{an(adj)} {noun} named {w.name}', f'{an(adj)} {noun} called {w.name}', f'{an(noun)} named {w.name}'])
        h.short = w.name; h.he, h.him, h.his = w.he, w.him, w.his
    else:
        a = r.choice(ANIMALS if kind == 'animal' else JOBS + W('king queen wizard knight giant pirate prince princess witch robot ghost')); 
        if chance(.05): a = pseudo()
        h.ask = an(a)
        sex = 'f' if a in W('queen princess witch hen cow') else 'm' if a in W('king prince knight') else r.choice('fm')
        h.he, h.him, h.his = ('she', 'her', 'her') if sex == 'f' else ('he', 'him', 'his')
        if chance(.55):
            n = r.choice(PETNAMES) if kind == 'animal' else name(sex, novel=.1).name
            h.n = h.N = n; h.intro = r.choice([f'{an(adj)} {a} named {n}', f'{an(a)} called {n}', f'{an(adj)} {a} called {n}']); h.short = n
        else: h.n, h.N, h.intro, h.short = 'the ' + a, 'The ' + a, an(adj) + ' ' + a, 'the ' + a
    h.He, h.His = cap(h.he), cap(h.his); return h
TIME = '[One day|One morning|One evening|Early one morning|One sunny day|One rainy afternoon|On a cold night|One windy day|Late one evening|One quiet Sunday|One bright day]'
OPEN = '[Once there was|There once was|Once upon a time there was|Long ago there lived|Near {p} lived|In a house by {p} lived|In a small town lived|Far away, near {p}, there lived]'
END = '[From that day on, {h} and {f} were the best of friends.|And {h} never forgot that day.|That night {h} slept very well.|They laughed about it for many years.|And every year, on that day, they ate {food} together.|{He} smiled all the way home.|It was the best day of the year.|And so {h} learned that [friends matter most|small steps lead far|it is good to ask for help|kindness comes back|patience helps|even small ones can be brave].|After that, nobody in {p} was ever lonely again.|They went home happy, just as the stars came out.]'
PLOT_CC = [  # hero + friend
 [OPEN + ' {hi}. [{He} lived next door to {fi}.|{His} best friend was {fi}.|{He} had only one friend, {fi}.]', TIME + ', {h} lost {his} {o} near {p}. [{He} looked everywhere but could not find it.|{He} searched until {his} feet hurt.|It was nowhere to be seen.]', '["Do not worry," said {f}. "We will find it together."|{F} saw that {h} was sad and offered to help.|"Let me help you," said {f}.]', '[They looked under every stone and behind every tree.|They asked {x}, who had seen it by the road.|They walked all the way to {p2} and back.|They followed a trail of small footprints.]', '[At last they found the {o} under a bush.|In the end, {f} spotted the {o} high up in a tree.|Then {f} saw something {c} in the grass. It was the {o}!]', '{H} [hugged {f} and said thank you.|was so happy that {he} danced.|shared {his} {food} with {f}.]'],
 [OPEN + ' {hi}, and {his} neighbour was {fi}. [They did everything together.|They were very different, but they got along well.]', TIME + ' they decided to build {ob}. [{H} brought the tools, and {f} drew a plan.|{F} carried the wood, and {h} held the nails.]', '[But the wind blew it down.|But it broke on the first try.|But it leaned to one side and fell over.|But they ran out of wood.] [{F} wanted to give up.|{H} sat down and sighed.|Both of them felt sad.]', '["We can try again," said {h}.|"Let us try a different way," said {f}.|Then {x} came by and showed them a better way.]', '[They worked until the sun went down.|This time they worked slowly and carefully.|They mixed patience with {food} and kept going.]', '[In the end, the {b} stood strong.|When it was done, everyone in {p} came to see it.|The new {b} was even better than the first.]'],
 [OPEN + ' {hi}. [{He} wanted to see {p2} more than anything.|{He} had never seen {p2}.]', TIME + ', {he} [packed some {food} and set off|put on {his} {c} {clo} and left the house|took {his} {o} and started walking].', '[On the way {he} met {fi}.|Halfway there, {he} met {fi}, who was lost.|By {p} {he} found {fi}, sitting alone.] "[Where are you going?|May I come with you?|Can I walk with you?]" asked {f}.', '["To {p2}," said {h}. "Come along!"|{H} was glad to have company.|"Of course," said {h}, and they went on together.]', '[They crossed a river and climbed a steep path.|It rained, so they shared one umbrella.|When it grew dark, they slept under a tree.|They sang songs to make the road shorter.]', '[At last they saw {p2}, and it was beautiful.|When they reached {p2}, the sun was rising.|In the end they stood at {p2} and could not speak.] [{F} said it was worth every step.|{H} took a deep breath and smiled.]'],
 [OPEN + ' {hi} who [could not sleep|was afraid of the dark|was afraid of storms]. [{He} tried counting stars, but it did not help.|Every night {he} lay awake.|{He} did not tell anyone.]', TIME + ', {fi} knocked on the door. "[Why is your lamp still on?|I heard you sigh.|You look tired.]" said {f}.', '{H} [told {f} the truth|explained everything|looked at the floor and told {f} about it].', '[{F} thought for a while and brought {an_o}.|{F} ran home and came back with {an_o}.|Then {f} had an idea and fetched {an_o}.] "[Keep this beside you|Put this by your bed|Hold this when you are afraid]," {fhe} said.', '[That night {h} looked at the {o} and felt safe.|The {o} shone softly, and {h} closed {his} eyes.|With the {o} close by, the night felt warm.]', '[In the morning {h} baked {food} to say thank you.|Soon {h} was sleeping like a stone.|After a week {h} was not afraid at all.]'],
 [OPEN + ' {hi} and {fi}. [They argued about everything.|They both loved {food}.|They both wanted to be the best.]', TIME + ' they found {an_o} [near {p}|by the road|on the path to {p2}]. ["It is mine," said {h}. "No, it is mine," said {f}.|Both of them wanted it.|{H} pulled on one side and {f} pulled on the other.]', '[They pulled so hard that the {o} almost broke.|They shouted until the birds flew away.|They did not speak for a whole day.]', '[Then {x} laughed and said, "Why not share it?"|An old {x2} watched them and shook {xhis} head.|At night {h} felt sorry and could not sleep.]', '[So {h} took the {o} in the morning, and {f} took it in the evening.|So they decided to use the {o} together.|{H} said sorry first, and {f} said sorry too.]', '[It was much more fun that way.|They never argued about it again.|The {o} belonged to both of them, and both were happy.]'],
 [OPEN + ' {hi}. [{He} was very good at running.|{He} was proud of {his} speed.|{He} liked to win.]', TIME + ' {he} asked {fi} to race to {p2}. [{F} was slow, but said yes.|{F} thought about it and agreed.]', '{H} [ran ahead and stopped to eat some {food}|was so sure that {he} took a nap|stopped to look at {an_o}]. [{F} kept walking, step by step.|{F} did not stop once.]', '[Suddenly {h} fell into a muddy ditch.|Then it began to rain, and {h} slipped.|But {h} took a wrong turn near {p}.] "[Help!|Please help me!|I am stuck!]" {he} called.', '[{F} turned around and pulled {h} out.|{F} could have won, but came back to help.]', '[They crossed the finish line together.|"You are the real winner," said {h}.|{H} never boasted again.]'],
]
PLOT_CO = [  # hero + object
 [OPEN + ' {hi} who found {an_oa} [near {p}|by the road|in an old box|under a tree]. [{He} had never seen anything like it.|{He} picked it up and cleaned it.|Nobody knew where it came from.]', '[When {he} touched it, the {o} began to glow.|When {he} shook it, the {o} made a soft sound.|At night the {o} whispered {his} name.|Inside it was a small note.]', '["What do you want?" asked {h}.|{H} was afraid at first, but {he} listened.|The note said: follow the path to {p2}.] [{He} decided to find out more.|So {he} put it in {his} bag and left.]', '[At {p2} {he} met {fi}, who was crying.|{He} walked to {p2}, and there sat {fi}.|The {o} led {him} to {p2}, where {fi} was waiting.]', '"[That is my {o}!|I lost it long ago.|My {o}! You found it!]" said {f}. {H} [gave it back at once|smiled and gave it back|wanted to keep it, but {he} gave it back].', '[{F} was so happy that {fhe} gave {h} {food} for the whole year.|{F} thanked {h} and told {him} the secret of the {o}.|From then on they used the {o} together.]'],
 [OPEN + ' {hi} who had {an_oa}. [{He} took it everywhere.|It was {his} favourite thing.|{His} grandmother had given it to {him}.]', TIME + ', the {o} [broke|fell and cracked|stopped working]. {H} [cried a little|did not know what to do|sat on the steps and sighed].', '[{He} carried it to {fi}, who could fix almost anything.|{He} asked {fi} for help.|Then {fi} came by and looked at it.]', '[{F} looked at the {o} for a long time.|{F} opened a box of tools and began to work.|"I need one thing," said {f}. "A {c} button."]', '[{H} ran to {p} and back to bring it.|{H} held the lamp while {f} worked.|They worked side by side until midnight.]', '[In the morning the {o} was as good as new.|At last the {o} worked again, even better than before.|When it was done, the {o} shone like the sun.] "[Thank you|You did it|Thank you so much]!" said {h}.'],
 [OPEN + ' {hi}. {He} [wanted|dreamed of having|wished for] {an_oa}, but {he} [had no money|could not find one|did not know how to get one].', '[So {he} worked for {fi} all summer.|So {he} sold {food} at {p}.|Every day {he} saved one coin.|{He} helped {fi} in the garden for many weeks.]', TIME + ', {he} [had enough at last|counted the coins and smiled|went to the shop at {p2}].', '[But on the way {he} met {x}, who was hungry and cold.|But then {he} saw that {x} needed help.|On the road sat {x}, who had lost everything.]', '{H} [thought about the {o} and sighed|looked at the coins|did not think for long]. [Then {he} gave the coins away.|Then {he} bought {food} for {x_short} instead.]', '[The next morning, there was {an_o} in front of {his} door.|When {he} came home, {an_o} stood on the table.|{F} heard about it and gave {h} {an_o} as a gift.] [{H} could not believe it.|On it was a note: for a kind heart.]'],
 [OPEN + ' {hi} who [lived alone near {p}|kept {an_oa} by the window|did not believe in magic].', TIME + ', a big storm came. [The lights went out and the river rose.|The wind took the roof of the barn.|Nobody could see the road.]', '[{H} remembered the old {o}.|{H} took {his} {o} and went outside.|Then {h} had an idea. {He} grabbed the {o}.] ["I must help," {he} said.|{He} was afraid, but {he} did not stop.]', '[Near {p2} {he} heard a voice. It was {fi}.|Out in the dark was {fi}, calling for help.|{He} found {fi} stuck in the mud.]', '[With the {o}, {h} pulled {f} to safety.|{H} used the {o} to show {f} the way home.|The {o} was just what they needed.]', '[When the storm was over, the whole village thanked {h}.|{F} hugged {h} and said, "You are a hero."|They drank hot cocoa until morning.]'],
 ['{H_intro} [had a secret|liked to collect things|had a very strange hobby]. [Every week {he} hid {an_oa} somewhere near {p}.|{He} kept {an_oa} under the floor.]', TIME + ', the {o} was gone. [There were small footprints on the ground.|Only a {c} feather lay there.|{H} could not believe {his} eyes.]', '{H} [followed the footprints to {p2}|asked {x}, who pointed to {p2}|put on {his} {clo} and went to {p2}].', '[There sat {fi}, playing with the {o}.|There {he} saw {fi}, who was polishing the {o}.]', '"[I am sorry,|I only wanted to look at it,|I thought nobody wanted it,]" said {f}. [{H} was not angry.|{H} laughed and sat down.]', '["We can share it," said {h}.|"You could have asked," said {h}, "but you are welcome to use it."] [They played until the moon came up.|Since then they hide the {o} together.]'],
]
def story_slots(h, f, o, place):
    ws = character('role'); p, p2 = r.sample(SPOTS, 2)
    if place: p2 = place
    b = r.choice(W('boat cart bridge tower kite sled tent raft treehouse windmill barn swing'))
    oa = (r.choice(OADJ) + ' ' + o)
    return {'h': h.n, 'H': cap(h.n), 'hi': h.intro, 'H_intro': cap(h.intro), 'he': h.he, 'He': h.He, 'his': h.his, 'His': h.His, 'him': h.him, 'f': f.n, 'F': cap(f.n), 'fi': f.intro, 'fhe': f.he, 'p': p, 'p2': p2, 'o': o, 'an_o': an(o), 'an_oa': an(oa), 'x': X('[an old farmer|a friendly crow|a wise owl|the baker|an old sailor|a little mouse|the postman|a tired traveller|a young shepherd]'), 'x_short': 'the stranger', 'x2': X('[owl|tortoise|gardener|fisherman]'), 'xhis': 'his', 'food': r.choice(FOODS), 'c': r.choice(COLOURS), 'clo': r.choice(W('coat hat scarf boots jacket cape')), 'b': b, 'ob': an(b)}
_slot = re.compile(r'\{(\w+)\}')
def tell(plot, sl):
    s = ' '.join(plot[:r.randint(5, 6)] if len(plot) > 5 else plot)
    if chance(.7): s += ' ' + END
    s = X(s); s = _slot.sub(lambda m: sl[m.group(1)], s)
    return re.sub(r'(^|[.!?] |^")([a-z])', lambda m: m.group(1) + m.group(2).upper(), s)
ASK = '[Tell me a story about {q}.|Tell me a story about {q}.|Can you tell me a story about {q}?|Please tell a story about {q}.|Write a short story about {q}.|I want a story about {q}.|A story about {q}, please.|Story about {q}|Make up a story about {q}.|Do you know a story about {q}?|Could you write a story with {q}?|Once upon a time, {q}...|Give me a little story about {q}.|I would like to hear about {q}.|Tell me about {q}, as a story.|bedtime story about {q} please|Let\'s have a story about {q}.]'
def sobj(): return r.choice(OBJECTS) if chance(.94) else pseudo()
def story(force=None):
    t = r.random() if force is None else force
    if t < .42:
        h, f = character(), character()
        while f.n == h.n or f.ask == h.ask: f = character()
        o = sobj(); q = f'{h.ask} and {f.ask}'; s = tell(r.choice(PLOT_CC), story_slots(h, f, o, None))
    elif t < .75:
        h, f = character(), character()
        while f.n == h.n or f.ask == h.ask: f = character()
        while True:
            o = sobj()
            if not h.ask[0].isupper() or ok(h.ask, o) or corpus_facts.SPLIT == 'val': break
        q = f'{h.ask} and {an(o)}'
        if chance(.15): q = f'{an(o)} and {h.ask}'
        s = tell(r.choice(PLOT_CO), story_slots(h, f, o, None))
    elif t < .85:
        h, f = character(), character()
        while f.n == h.n or f.ask == h.ask: f = character()
        o, pl = sobj(), r.choice(SPOTS); q = f'{h.ask} and {pl}' if chance(.5) else f'{h.ask} at {pl}'; s = tell(PLOT_CC[2] if chance(.5) else r.choice(PLOT_CO[:1] + PLOT_CO[3:]), story_slots(h, f, o, pl))
    elif t < .95:
        h, f = character(), character()
        while f.n == h.n or f.ask == h.ask: f = character()
        o = sobj(); 
        if chance(.5): q = h.ask; s = tell(r.choice(PLOT_CC + PLOT_CO), story_slots(h, f, o, None))
        else: q = an(o); s = tell(r.choice(PLOT_CO), story_slots(h, f, o, None))
    else:
        h, f = character(), character()
        while f.n == h.n or f.ask == h.ask: f = character()
        o = sobj(); q = None; s = tell(r.choice(PLOT_CC + PLOT_CO), story_slots(h, f, o, None))
    u = U(ASK.replace('{q}', q)) if q else U('[Tell me a story.|Another story please.|Can you tell me a story?|I want to hear a story.|Story time!|One more story.|Tell me a bedtime story.|story]')
    out = [('user', u), ('assistant', X('[|||||Sure! |Of course. |Here is a story. |Gladly. ]') + s)]
    if chance(.3):
        c = []
        if h.n[0].isupper(): c.append(('[Who was the story about?|Who is the hero of the story?|What was the hero called?|Who was the main character?|What is the name of the hero?]', f'[The story was about {h.n}.|The hero was {h.n}.|It was about {h.n}.]'))
        if o in s: c.append((f'[Was there {an(o)} in the story?|Did the story have {an(o)}?]', f'[Yes, there was {an(o)}.|Yes, the story had {an(o)}.]'))
        else:
            c.append((f'[Was there {an(o)} in the story?|Did the story have {an(o)}?]', f'[No, there was no {o}.|No, the story had no {o}.]'))
        if f.n in s and h.n in s: c.append((f'[Who else was in the story?|Who was the other one?|Who did {h.n} meet?|Who was with {h.n}?]', f'[{cap(f.n)}.|{cap(f.n)} was also in the story.|It was {f.n}.]'))
        q, a = r.choice(c); out += [('user', U(q)), ('assistant', X(a))]
    return out
def story_me(w):
    h = character('child', w); f = character(); o = r.choice(OBJECTS); pl = r.choice(PLOT_CC + PLOT_CO)
    return [('user', U('[Tell me a story about me.|Can you tell a story about me?|A story about me, please.|Make me the hero of a story.|Write a story with me in it.|I want a story about myself.]')), ('assistant', tell(pl, story_slots(h, f, o, None)))]
def story_obj(c, o):
    h, f = character(), character()
    return [('user', U(f'[Tell me a story about my {o}.|Can you tell a story about my {o}?|A story with my {o}, please.]')), ('assistant', tell(r.choice(PLOT_CO[:3]), dict(story_slots(h, f, o, None), an_oa=an(c + ' ' + o))))]

FILL = [(t_math, 3), (t_know, 3), (t_talk, 4), (t_self, 3), (t_refuse, 2), (t_repeat, 1.5), (t_listq, 1.5), (t_reverse, 1)]
_fw = [w for _, w in FILL]
def filler(): return r.choices([f for f, _ in FILL], _fw)[0]()

def size(t): return sum(len(x[1]) + 18 for x in t)
BUD = 1500
def facts_dialogue(evalmode=False, dist=None):
    out = []; fs = []; who = None
    pool = list(FACTS); k = r.choice([1, 1, 2, 2, 3, 3, 4, 5])
    kinds = set(); objs = set()
    while len(fs) < k:
        f = r.choice(pool)(who) if (who and chance(.99) and False) else None
        g = r.choice(pool)
        f = g(who) if g is f_thing else g()
        key = f['kind'] if f['kind'] not in ('thing', 'count', 'rel', 'fav') else f['state'][-30:]
        if key in kinds or (f.get('obj') and f['obj'] in objs) or (f['kind'] == 'list' and 'list' in kinds): continue
        if f['kind'] == 'fav' and any(f['qs'][0][0] == g2['qs'][0][0] for g2 in fs): continue
        if f['kind'] in ('rel',) and any(g2['kind'] == 'rel' and g2['unk'][1] == f['unk'][1] for g2 in fs): continue
        if f['kind'] == 'thing' and any(g2['kind'] == 'thing' and g2['sum'].split(' is ')[-1] == f['sum'].split(' is ')[-1] for g2 in fs): continue
        kinds.add(key); objs.add(f.get('obj')); fs.append(f)
        if f['kind'] == 'name': who = f['who']
    i = 0
    while i < len(fs):   # state one or several facts per turn
        m = min(len(fs) - i, r.choice([1, 1, 1, 2, 2, 3])); grp = fs[i:i + m]; i += m
        st = ' '.join(X(f['state']) for f in grp)
        out += [('user', U(st)), ('assistant', X(grp[-1]['ack'] if m == 1 or chance(.5) else grp[0]['ack'] if chance(.5) else GOT))]
        if chance(.2) and size(out) < BUD * .5: out += filler()
    for _ in range(r.choice([0, 0, 0, 1, 1, 2, 3]) if dist is None else dist):
        if size(out) < BUD * .65: out += story(r.random() * .9) if chance(.12) else filler()
    upd = None
    if chance(.08):
        ts = [f for f in fs if f['kind'] == 'thing']
        if ts:
            f = r.choice(ts); c2 = r.choice([c for c in COLOURS if c != f['col']]); o = f['obj']
            if ok(c2, o):
                out += [('user', U(f'[I painted my {o} {c2}.|Actually, my {o} is {c2} now.|I was wrong, my {o} is {c2}.|My {o} is {c2} now.]')), ('assistant', X(f'[{GOT}|{GOT} Your {o} is {c2} now.|Okay, your {o} is {c2}.]'))]
                out += [('user', U(f['qs'][0][0])), ('assistant', X(f'[Your {o} is {c2}.|Your {o} is {c2} now.|It is {c2} now.]'))]; fs = [x for x in fs if x is not f] or fs[:0]
    qs = []
    for f in fs:
        qq = list(f['qs']); r.shuffle(qq); qs += [(f,) + q for q in qq[:r.choice([1, 1, 2])]]
    r.shuffle(qs)
    if evalmode: return out, qs
    if chance(.06):
        g = r.choice(FACTS)
        f = g()
        if f['kind'] not in [x['kind'] for x in fs] and not any(f['unk'][0] == x['unk'][0] for x in fs): out += [('user', U(f['unk'][0])), ('assistant', X(f['unk'][1]))]
    for j, (f, q, a, key) in enumerate(qs[:r.randint(1, 5)]):
        if size(out) > BUD: break
        out += [('user', U(q)), ('assistant', X(a))]
        if f['kind'] == 'thing' and chance(.12) and a.find('Look') >= 0: out += [('user', U(f['follow'][0])), ('assistant', X(f['follow'][1]))]
        if chance(.12) and size(out) < BUD * .8: out += filler()
    if chance(.06) and len(fs) >= 1 and size(out) < BUD * .9:
        out += [('user', U('[What do you know about me?|What have I told you?|Tell me everything you know about me.|What do you remember about me?|Summarise what I told you.]')), ('assistant', X('[Here is what I know: |You told me that |I know that ]') + join([f['sum'] for f in fs]) + '.')]
    if who and chance(.1) and size(out) < BUD * .6: out += story_me(who)
    ts = [f for f in fs if f['kind'] == 'thing']
    if ts and chance(.05) and size(out) < BUD * .6: out += story_obj(ts[0]['col'], ts[0]['obj'])
    if chance(.12): out += t_talk()
    return out
def system_turn():
    t = r.random()
    if t < .35: return [('system', X('[You are a helpful assistant.|You are a tiny model.|You are a friendly assistant that answers in short sentences.|Answer briefly.|You tell stories and remember facts.|You are a small language model in a web page.|Be kind and brief.|You are a helpful assistant running in a browser.]'))], []
    if t < .7:
        n = r.choice(PETNAMES) if chance(.5) else name(novel=.4).name
        return [('system', X(f'[You are {n}.|Your name is {n}.|You are a helpful assistant named {n}.|You are called {n}, a tiny assistant.|You are {n}, a friendly robot.]'))], [('user', U('[What is your name?|Who are you?|What\'s your name?|What are you called?|What should I call you?]')), ('assistant', X(f'[My name is {n}.|I am {n}.|You can call me {n}.|I am {n}, a tiny model in your browser.]'))]
    f = r.choice([f_name, f_home, f_job, f_age])(); s = {'name': f'The user\'s name is {f["qs"][0][2]}.', 'home': f'The user lives in {f["qs"][0][2]}.', 'job': f'The user works as {an(f["qs"][0][2])}.', 'age': f'The user is {f["qs"][0][2]} years old.'}[f['kind']]
    return [('system', X('[|You are a helpful assistant. |Answer briefly. ]') + s)], [('user', U(f['qs'][0][0])), ('assistant', X(f['qs'][0][1].replace('You told me your', 'Your').replace('You said your', 'Your').replace('You told me you', 'You')))]
MIX = [('facts', 40), ('story', 22), ('scene', 7), ('codes', 8), ('kv', 4), ('copy', 8), ('chat', 8), ('know', 6), ('define', 1.5), ('poem', 2)]
_mk, _mw = [m for m, _ in MIX], [w for _, w in MIX]
def dialogue():
    m = r.choices(_mk, _mw)[0]; out = []; tail = []
    if chance(.12): out, tail = system_turn()
    if m == 'facts': out += facts_dialogue()
    elif m == 'story':
        if chance(.15): out += t_talk()
        out += story()
        if chance(.2): out += r.choice([story, filler, filler])()
    elif m in ('scene', 'codes', 'kv'):
        f = {'scene': t_scene, 'codes': t_codes, 'kv': t_kv}[m]; out += f()
        if chance(.3): out += filler()
    elif m == 'copy': 
        for _ in range(r.randint(1, 5)): out += r.choice([t_repeat, t_repeat, t_reverse, t_listq])()
    elif m == 'chat':
        for _ in range(r.randint(1, 5)): out += r.choice([t_talk, t_self, t_talk, t_self, t_refuse])()
    elif m == 'know':
        for _ in range(r.randint(1, 6)): out += r.choice([t_math, t_know, t_math])()
    elif m == 'define': out += t_define()
    else: out += t_poem()
    if tail and size(out) < BUD: out += tail
    return out
_adj = re.compile(r'\b(%s) (%s)(?=\b|s\b|es\b)' % ('|'.join(COLOURS), '|'.join(sorted(OBJECTS + KEYN, key=len, reverse=True))), re.I)
def leaks(s): return any(held(a.lower(), b.lower()) for a, b in _adj.findall(s))
def render(t): return ''.join(f'<|im_start|>{a}\n{b}<|im_end|>\n' for a, b in t)
def evalset(n):
    """n recall questions on held-out combinations: [{messages, key, kind, dist}]"""
    E = []
    while len(E) < n:
        t = r.random()
        if t < .6:
            out, qs = facts_dialogue(True, dist=r.choice([0, 1, 2, 3]))
            if not qs: continue
            f, q, a, key = qs[0]; kind = f['kind']
            msg = out + [('user', U(q))]
        elif t < .8:
            S, Q, d = codes(); q, a, key = r.choice(Q); kind = 'code'; msg = [('user', S), ('assistant', X(GOT))] + (filler() if chance(.5) else []) + [('user', U(q))]
        else:
            S, Q = scene(); q, a, key = r.choice(Q); kind = 'scene'; msg = [('user', X(S)), ('assistant', X(GOT))] + (filler() if chance(.5) else []) + [('user', U(q))]
        if size(msg) > 1700: continue
        E.append(dict(kind=kind, key=key, messages=msg))
    return E
def setup(split, seed):
    corpus_facts.SPLIT = split; r.seed(seed)
if __name__ == '__main__':
    a = sys.argv[1:]
    if '--mix' in a: _mw[:] = [{'facts': 26, 'story': 12, 'scene': 20, 'codes': 24, 'kv': 3, 'copy': 6, 'chat': 4, 'know': 8, 'define': 1, 'poem': 1}[m] for m in _mk]
    def opt(k, d): return a[a.index(k) + 1] if k in a else d
    setup('val' if a[0] == '--eval' else opt('--split', 'train'), int(opt('--seed', '1')))
    if a[0] == '--eval': json.dump(evalset(int(a[2])), open(a[1], 'w'), ensure_ascii=False)
    else:
        n, lim = 0, float(a[1]) * 1e6
        with open(a[0], 'w') as f:
            while n < lim:
                s = render(dialogue())
                if len(s) > 2000 or (corpus_facts.SPLIT == 'train' and leaks(s)): continue
                f.write(s + '\x1e\n'); n += len(s.encode())
