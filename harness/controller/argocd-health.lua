-- Health of a Canary for Argo CD. Its built-in rule does not know phase Frozen and calls it Unknown; here it is Degraded, as a person
-- has to decide. A Canary that is refused (condition Accepted) or suspended is told apart as well.
local by_phase = {
  Initialized = "Healthy",
  Succeeded = "Healthy",
  Failed = "Degraded",
  Frozen = "Degraded",
  Initializing = "Progressing",
  Waiting = "Progressing",
  Progressing = "Progressing",
  WaitingPromotion = "Progressing",
  Promoting = "Progressing",
  Finalising = "Progressing",
  Terminating = "Progressing",
  Terminated = "Progressing",
}
local status = obj.status or {}
local said = {}
for _, condition in ipairs(status.conditions or {}) do
  said[condition.type] = condition
end
if said.Accepted and said.Accepted.status == "False" then
  return { status = "Degraded", message = said.Accepted.message or "" }
end
if obj.spec and obj.spec.suspend then
  return { status = "Suspended", message = "spec.suspend is true" }
end
if not status.phase or status.phase == "" then
  return { status = "Progressing", message = "no controller has looked at it yet" }
end
local promoted = said.Promoted or {}
return { status = by_phase[status.phase] or "Unknown", message = promoted.message or "" }
