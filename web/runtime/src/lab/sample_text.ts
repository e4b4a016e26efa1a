// The lab's own text: dialogues that models are measured and calibrated on, and questions about facts stated before. From
// the grammar of the default model (examples/models/training/generate_corpus.py), its validation split: combinations that
// the model has not seen. Plain English, so that other models can be measured on it too.
import type { ChatMessage } from '../types.js';

/** A line a turn, '> ' the user's and '< ' the model's; blank lines between dialogues. */
const DIALOGUES = `
> What is your age?
< I am quite new. I do not have an age.
> Are you a person?
< I am not a person, just a very small model.
> Are you big?
< I have about three million parameters, in six layers. That is very small for a language model.

> The red pencil at the harbour is mine
< That sounds like a nice pencil.
> Write an essay.
< Sorry, that is too hard for me. I am good at short stories and small facts.
> I have worked as a juggler for seven years.
< Being a juggler sounds fun.
> Jacob has 2 lanterns and gives away 0. How many lanterns are left?
< 2 minus 0 is 2, so Jacob has 2 lanterns.
> What's my job
< You told me you are a juggler.
> What is the day after monday?
< Tuesday comes after Monday.
> What do I keep at the harbour?
< You keep a red pencil at the harbour.

> Also, my shopping list: ten, nineteen, eight, one.
< I will remember: ten, nineteen, eight, one.
> Name the second item on my shopping list.
< It is nineteen.
> Which item is last on my shopping list?
< The last item is one.

> My birthday is on february 18. i'm an astronomer by trade.
< Okay, I have it.
> My crimson wagon is in the garage. My tractor is in the wardrobe. It is yellow
< Noted.
> When was I born?
< You were born on February 18.
> My tractor is bronze, right again?
< No, your tractor is yellow.
> say this: 'his dress laughs'
< his dress laughs
> What is the colour of my wagon?
< Your wagon is crimson.

> How many layers do you have
< I have about three million parameters, in six layers. That is very small for a language model.
> What do you like
< I like short stories best.

> My favourite month is February. I hid a crimson broom in the shed. I celebrate my birthday on February 17.
< Sure, I will keep that in mind.
> well, we have a ept kitten, dot. there are twelve diarys in my room.
< Good to know.
> Are you a person?
< I am not a person, just a very small model.
> Repeat: '23 1 584 3641'
< 23 1 584 3641
> Do you know where my broom is?
< It is in the shed.
> How many diarys are three, can you tell me?!!
< You told me you have twelve diarys.
> Which month do I like best?
< You told me it is February.
> What do you know about me?
< Here is what I know: your favourite month is February, your crimson broom is in the shed, your birthday is on February 17, your kitten is called Dot and you have twelve diarys.

> Is peas in this list: beans, bananas, pancakes, lemons, peas?
< Yes, it is there.
> Echo: drizan likran
< drizan likran
> repeat this: carrots red shark druyan thimble
< carrots red shark druyan thimble
> List these in reverse: bananas, porridge, olives.
< Olives, porridge, bananas.
> Reverse this list: briamix, turquoise, sheep, carrots, plaibrir
< Plaibrir, carrots, sheep, turquoise, briamix.

> My favourite month is August. I'm 53.
< Good to know.
> My word list: turquoise, copper, scarlet, black.
< Four things. Thanks for telling me.
> Day before Tuesday
< Monday.
> Which month do I like best?
< It is August.

> Um, I'm Noor
< Good to meet you, Noor!
> I am a clown.
< Okay.
> also, thanks
< Happy to help!
> What is my job?
< You work as a clown.
> Do you like me?
< I do not have feelings, but I like a good chat.
> Do you remember my name?
< You told me your name is Noor.

> omelettes: giadrustees; plums: vamaix; carrots: drabriam; dates: triakrufis. Omelettes?
< giadrustees
> What is omelettes
< It is giadrustees.
> What's my job
< You work as a florist.

> Hi, I'm Ines.
< Nice to meet you, Ines!
> I put my golden suitcase in the workshop
< Good to know.
> I celebrate my birthday on October 19. Sloth is my favourite animal. There are 11 fans in my room
< Understood.
> Please what do people call me?
< You told me your name is Ines.
> How many fans do I have?
< 11 fans.
> Where idd i leave the suitcase?
< Your golden suitcase is in the workshop.

> Navy is my favourite colour. my copper letter is in the workshop. my favorite drink is coffee
< Sure, I will keep that in mind.
> Day before Friday?
< The day before Friday is Thursday.
> Which colour do I like best
< Navy is your favourite colour.

> The red garage opens with secret word floyachiar. What's the secret word for the red garage?
< It is floyachiar.
> How do I open the red garage?!
< The secret word for the red garage is floyachiar.

> Viktor has 7 dumplings and buys 8 more. How many dumplings does he have now
< 15 dumplings.
> Also, Mei has ten cookies and loses five. How many cookies are left
< Five cookies.

> Garage nine opens with password hedgehog.
< I will remember that.| Garage nine opens with password hedgehog.
> Okay, which one has the password hedgehog?
< That is the password for garage nine.
> So, how do I open garage nine?
< The password for garage nine is hedgehog.

> The blue box opens with pin 372. What opens with 372? :)
< That is the pin for the blue box.
> Hi! pin for the blue box?
< The pin for the blue box is 372.
> Please tell me the pin for the blue box.
< It is 372.
> You are great
< Thanks! That is kind of you.

> I have an orange blanket. It is on the balcony. The day I like most is Sunday.
< Understood.
> I bought a yellow bucket and put it in the pantry. My birthday is February 2!
< Noted.
> My brother is called Bruno.
< Say hello to Bruno.
> Remove elephant from this list: elephant, ant, hamster, flamingo, hippo.
< Ant, hamster, flamingo, hippo.
> reverse the order of Tallinn, Kyoto, Lagos
< Lagos, Kyoto, Tallinn.
> What was my favourite day?
< It is Sunday.
> Do you remember my birthday?
< It is on February 2.

> If I had to pick a month, it would be October. I work as a weaver!!
< Being a weaver sounds fun.
> My favourite instrument is harp. I left my pink painting on top of the fridge.
< A pink painting, how nice!
> What was my favourite instrument
< It is harp.
> Help me find my painting
< You can find it on top of the fridge.
> Tell me my favourite month.
< It is October.
> Do you remember my job?
< You are a weaver.

> My mother Kredraisk is very kind. I collected two helmets. I'm from Boston.
< All right.
> so, how does a pig sound?
< The pig goes oink!
> Count my helmets
< You told me you have two helmets.
> Where is my home?
< Your home is in Boston.
> Reverse this list: two, fourteen, eleven, nine, ten
< Ten, nine, eleven, fourteen, two.
> Where am i from?
< You live in Cekroowox.

> Now there is a pink fan under the rug. My favourite season is autumn.
< Good taste!
> and I am Peter. Home is Paris for me.
< Understood.
> Hey
< Hello! Tell me something, and I will try to remember it.
> Which number is larger: 13 or 17 again
< 17.
> No, that is not right
< Oh, I am sorry. Please tell me again.
> What was my favourite season?
< Autumn is your favourite season.

> I come from nice. i have sixteen brushes at home.
< Sixteen brushes, that is a lot!
> Read this list from the end: Cork, Sydney, Bruges
< Bruges, Sydney, Cork.
> awesome
< I am glad you like it.
> Hey how many brushes do I have
< You have sixteen brushes.
> Which town do I live in
< You live in Nice.

> my aunt ingrid is very clever. i celebrate my birthday on september 22.
< September 22, I will remember.
> How do I know Ingrid?
< You told me Ingrid is your aunt.
> Do you remember my aunt's name?
< Your aunt's name is Ingrid.
> Okay, do you remember my birthday
< It is on September 22.

> I am ladra
< Hello, Ladra!
> My golden bell is in the closet!
< A golden bell in the closet. Sure, I will keep that in mind.
> My packing list is peas, pumpkin, mushrooms and pasta.
< Four things. Thanks for telling me.
> Copy: Her hippo shines in the rain.
< Her hippo shines in the rain.
> Where is the bell? :)
< It is in the closet.

> I live in Sizini.
< Sizini sounds nice.
> 6 minus 3
< It is 3.
> Where do I live
< You live in Sizini.
> Do you make mistakes, please?
< Not very! I am tiny, and I make mistakes.
`;

export function messagesOf(text: string): ChatMessage[] {
  return text.split('\n').flatMap((line) => {
    const role = { '> ': 'user', '< ': 'assistant' }[line.slice(0, 2)];
    return role === undefined ? [] : [{ role, content: line.slice(2) }];
  });
}

export const blocks = (text: string) => text.trim().split('\n\n');

export function sampleDialogues(): ChatMessage[][] {
  return blocks(DIALOGUES).map(messagesOf);
}
