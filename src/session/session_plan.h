// How a session's plan turns into the options of the parts it is made of; for session.cc and
// session_plan.cc.
#ifndef HEADLIGHT_SESSION_SESSION_PLAN_H_
#define HEADLIGHT_SESSION_SESSION_PLAN_H_

#include <vector>

#include "base/head_layout.h"
#include "model/decoder.h"
#include "session/session.h"

namespace headlight {

std::vector<HeadLayout> HeadLayouts(const ModelSpec& spec);

DecoderOptions DecoderOptionsOf(const SessionPlan& plan, ActivationType activations);

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_SESSION_PLAN_H_
