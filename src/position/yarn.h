// What YaRN (arXiv 2309.00071) does beside the frequencies that rope.h stretches.
#ifndef HEADLIGHT_POSITION_YARN_H_
#define HEADLIGHT_POSITION_YARN_H_

namespace headlight {

// Its temperature, as a factor of cosines and sines: 0.1 m ln(factor) + 1; 1 for a factor up to 1.
double YarnMagnitude(double factor, double m);

}  // namespace headlight

#endif  // HEADLIGHT_POSITION_YARN_H_
