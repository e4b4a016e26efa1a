// The lab's own questions, each at the end of a conversation that has told the answer. Same source as sample_text.ts.
import type { ChatMessage } from '../types.js';
import { blocks, messagesOf } from './sample_text.js';

export interface RecallQuestion {
  /** The end of a conversation: the last message asks. */
  messages: ChatMessage[];
  /** What the answer must contain, in any case of letters. */
  expected: string;
}

/** As in sample_text.ts, with what is expected in front. */
const QUESTIONS = `
= cooking
> cooking is my favourite hobby.
< Cooking! Good choice.
> Hey, which hobby do I like most?

= Kenji
> Kenji has a beige truck. Finn carries a beige basket. Hassan's dress is bronze.
< All right.
> You ok
< I am fine, thank you. How are you?
> Who does the truck belong to?

= Tilda
> Hi! hi, i'm tilda. i'm from fez.
< I hope you like Fez.
> now I am leaving now
< Take care!
> Who am I?

= tent
> The grey hourglass is Ali's. Nell's canoe is amber. Opal found a teal purse. Jacob bought a cream tent.
< I will remember that.
> What belongs to Jacob, please?

= Oslo
> I bought a scarlet taikras and put it in the tower. call me olga.
< Thanks for telling me.
> The yellow doll in the boat house is mine!!
< I will remember that.
> I come from Oslo. 96 is my favourite number.
< 96, nice.
> Explain black holes
< That is beyond me. I only know simple things and what you tell me.
> do you dream
< I am only a small model, so I do not feel things. It is nice to chat, though.
> Say something funny
< Why was the broom late? It swept too long.
> Now where do you run?
< I run only inside your browser. No server is needed.
> Tell me where i live

= suitcase four
> Safe ten opens with secret word llama. Suitcase four opens with secret word cat. Safe nine opens with secret word traicushi.
< All right.
> who r u
< I am a very small language model, and I run inside your browser. Ask me for a story, or tell me a fact and ask about it later.
> So, which one has the secret word cat

= sheep
> I have a sheep named Mango.
< What a nice sheep!
> I have 20 lamps. There is a crimson bell by the window.
< Sure, I will keep that in mind. Your bell is crimson.
> Can you work out 9 plus 1?
< It is 10.
> Well, who trained you?
< I was trained from scratch on made-up dialogues, on two processor cores in about an hour.
> um, what animal is Mango?

= three
> My grandmother's name is Quinn. Here is my to-do list: boovait, spoon, gorilla.
< Three things. Okay, I have it.
> Copy this: A friendly carpet rolls.
< A friendly carpet rolls.
> Count up from 9 to 13.
< 9, 10, 11, 12, 13.
> How long is my to-do list

= violet
> Jonas carries a beige button. Tilda carries a violet clock. The silver telescope belongs to Flekrikoox. Leila left a violet plate in the classroom.
< Got it.
> Sure
< Would you like a story?
> What colour is Tilda's clock?

= 72
> I just turned 72
< Okay, I have it. You are 72.
> What's my age

= Ingrid
> I like Friday best of all. It is my favorite day.
< Friday, nice.
> My cousin is called Ingrid.
< All right.
> Make me a website.
< Sorry, that is too hard for me. I am good at short stories and small facts.
> What is not laugh?
< Cry.
> Name my cousin.

= fishing
> I'm a farmer by trade. If I had to pick a hobby, it would be fishing.
< Noted. Your favorite hobby is fishing.
> We have a pet mouse, Whisker.
< All right.
> I have a purple microscope. It is in the garage.
< A purple microscope in the garage. Thanks for telling me.
> what was my favorite hobby?

= 782
> Box three: 0000. Cabinet six: 988. The red vault: 782.
< Sure, I will keep that in mind.
> How many seasons are there?
< There are four seasons: spring, summer, autumn and winter.
> Which pin opens the red vault?

= shirt
> Use password goat for gate ten. Use password keeyoo for shed six. Use password leepix for the shed. Use password coin for drawer seven. Use password shirt for bike eight.
< Noted.
> How much is 9 minus 7?
< It is 2.
> Which password opens bike eight?

= six
> now i collected six swords. my net is in the boat house. it is brown.
< That sounds like a nice net.
> Fix my code.
< That is too big a job for me. I can tell a story or remember a fact.
> Copy: bruskesi
< bruskesi
> Please opposite of give?
< Take.
> Do you remember how many swords i have?

= navy
> I put my navy shovel in the mailbox.
< Thanks for telling me.
> My age is 81. the drink i like most is cider.
< Noted. Your favourite drink is cider.
> What colour is the shovel again?

= turquoise
> Briazoolom's chest is turquoise. The scarlet ladder is Milo's. Rolf bought a beige flower. Nils's mug is black.
< Understood.
> Which colour is the chest?

= 3551
> The code of the orange bike is 96460. The code of the blue room is 5502. The code of the grey garage is 6538. The code of suitcase B is 3551. The code of the silver chest is 5947.
< Okay.
> I need the code for suitcase B.

= Quill
> i like cocoa best of all. it is my favourite drink. my dog is called quill.
< Thanks for telling me.
> Who is my pet?

= six
> I was born on November 6. I collected six suitcases.
< November 6, I will remember.
> Do you remember how many suitcases I have?

= eleven
> My packing list: pumpkin, grapes, figs, cake. I found eleven paintings today
< I will remember that.
> Im a pilot by trade
< I will remember that.
> Interesting
< Good. What next?
> What is the number of my paintings?

= 73385
> Chest 56: 237. Chest eight: 1681. Box nine: 02153. The white cabinet: 8232. Gate 50: 73385.
< Understood.
> Also, do you have feelings?
< I am only a small model, so I do not feel things. It is nice to chat, though.
> Do you remember the number for gate 50

= Gikrait
> Olaf found an amber accordion. The white knife belongs to Gikrait. Jack put an orange hook at the harbour. Viktor likes a scarlet camera.
< I will remember that.
> So, who has a white knife

= daffodil
> Daffodil is my favorite flower.
< Daffodil! Good choice.
> What was my favorite flower?
`;

export function sampleQuestions(): RecallQuestion[] {
  return blocks(QUESTIONS).map((block) => ({
    messages: messagesOf(block),
    expected: block.slice(2, block.indexOf('\n')),
  }));
}
