// How a session's plan turns into the options of the parts it is made of; for session.cc and
// session_plan.cc.
#ifndef HEADLIGHT_SESSION_SESSION_PLAN_H_
#define HEADLIGHT_SESSION_SESSION_PLAN_H_

#include "model/decoder.h"
#include "session/session.h"

namespace headlight {

DecoderOptions DecoderOptionsOf(const SessionPlan& plan, const SessionOptions& options);

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_SESSION_PLAN_H_
