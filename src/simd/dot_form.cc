#include "simd/dot_form.h"

namespace headlight {

const char* DotFormName(DotForm form) {
  switch (form) {
    case DotForm::kWide:
      return "wide";
    case DotForm::kUnsigned:
      return "unsigned";
    case DotForm::kSigned:
      return "signed";
    case DotForm::kSplit:
      return "split";
  }
  return "wide";
}

}  // namespace headlight
