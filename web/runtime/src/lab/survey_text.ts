// The built-in text that heads are labelled over: plain sentences in which names and phrases come again, so that induction
// heads have something to do. Written for this project.
export const SURVEY_TEXT = [
  'Mara had a small boat. The small boat was blue, and Mara painted a star on it. Every morning Mara took the blue boat to the lake.',
  'One day Tobin came to the lake. "May I sit in the blue boat?" said Tobin. "Yes," said Mara, "but hold the rope." Tobin held the rope.',
  'The wind came and the boat went far. Tobin was afraid. "Hold the rope," said Mara, and Tobin held the rope until the wind was gone.',
  'Then they saw a white bird with a red ring. The white bird with the red ring sat on the star. "A good star," said Tobin, and Mara smiled.',
  'They went home when the sun went down. The lake was still, the blue boat was still, and the white bird with the red ring was asleep.',
].join(' ');
