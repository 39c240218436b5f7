/**
 * Who may exchange which token for what. RFC 8693 sections 2, 4.1 and 4.4; decisions.md 7.6, token
 * exchange. All of it is pure: rows and signatures are somebody else's.
 */
import type { ActingParty, Principal } from '../../../domain/principal.js'
import { ACT_DEPTH_MAX, type ReadToken } from '../issue/access-token.js'
import type { OAuthForm } from '../form.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'

export const ACCESS_TOKEN_URN = 'urn:ietf:params:oauth:token-type:access_token'

/** Whoever asks for the exchange, authenticated. */
export type Exchanger =
  | {
      readonly kind: 'application'
      readonly id: string
      readonly audience: string
      readonly scopes: readonly string[]
    }
  | { readonly kind: 'agent'; readonly id: string }

export type ExchangeAsked = {
  readonly subject: ReadToken
  readonly exchanger: Exchanger
  /** The agent of the actor token; null without one. */
  readonly actor: string | null
  /** The agent that is to act next, as `may_act` of the request names it. */
  readonly mayAct: string | null
}

export type ExchangeVerdict =
  /** The same authority, or less: of the subject itself, or of the agent that acts already. */
  | { readonly tag: 'kept' }
  /** The agent that was named takes over from the one that named it. */
  | { readonly tag: 'handed_on'; readonly actors: readonly ActingParty[] }
  /** The agent acts for a person, as far as a delegation of theirs allows. */
  | { readonly tag: 'delegated'; readonly agentId: string }
  | OAuthRefused

/** What the exchange comes to, before scopes, audience and lifetime are looked at. */
export function judgeExchange(asked: ExchangeAsked): ExchangeVerdict {
  const { actors } = asked.subject.principal
  const verdict = actors.length > 0 ? judgeDelegated(asked, actors) : judgePlain(asked)
  if (asked.mayAct === null || verdict.tag === 'oauth_refused') return verdict
  if (verdict.tag !== 'kept' || actors.length === 0)
    return refuse('invalid_request', 'may_act is for the agent that acts for somebody')
  return asked.mayAct === actors[0]?.sub
    ? refuse('invalid_request', 'may_act names the agent that acts already')
    : verdict
}

function judgeDelegated(
  { subject, exchanger, actor }: ExchangeAsked,
  actors: readonly ActingParty[],
): ExchangeVerdict {
  if (exchanger.kind !== 'agent') return refuse('consent_required', 'only the acting agent may')
  if (exchanger.id === actors[0]?.sub) return { tag: 'kept' }
  if (subject.mayAct !== exchanger.id)
    return refuse('consent_required', 'the acting agent did not hand this on to the one that asks')
  if (actor === null)
    return refuse('invalid_request', 'actor_token is needed to take over from another agent')
  if (actors.length >= ACT_DEPTH_MAX)
    return refuse('invalid_request', `a chain has at most ${ACT_DEPTH_MAX} actors`)
  return { tag: 'handed_on', actors: [{ sub: exchanger.id, subjectType: 'agent' }, ...actors] }
}

function judgePlain({ subject, exchanger, actor }: ExchangeAsked): ExchangeVerdict {
  const { principal } = subject
  const { subjectType } = principal
  const theirs = isTheirs(principal, exchanger)
  if (actor === null || principal.subject === actor) {
    return theirs ? { tag: 'kept' } : refuse('consent_required', 'the token is not the client’s')
  }
  // An application brings an agent to a person's token that it could exchange itself.
  const maySpeak = exchanger.kind === 'agent' ? exchanger.id === actor : theirs
  return subjectType === 'human' && maySpeak
    ? { tag: 'delegated', agentId: actor }
    : refuse('consent_required', 'nobody allowed the agent to act for this subject')
}

/** Issued to the client, or meant for its audience. */
function isTheirs({ clientId, subjectType, audience }: Principal, exchanger: Exchanger): boolean {
  if (clientId === exchanger.id) return true
  return (
    exchanger.kind === 'application' &&
    subjectType === 'human' &&
    audience.includes(exchanger.audience)
  )
}

/**
 * The scopes of the new token: those asked for, or all, of what every bound allows. Null when
 * something else was asked for, or nothing is left.
 */
export function shrunkScopes(
  asked: readonly string[] | null,
  bounds: readonly (readonly string[])[],
): readonly string[] | null {
  const [first = [], ...others] = bounds
  const most = first.filter((scope) => others.every((bound) => bound.includes(scope)))
  if (asked !== null && !asked.every((scope) => most.includes(scope))) return null
  const scopes = asked ?? most
  return scopes.length === 0 ? null : scopes
}

/** The two tokens of the request and their types; anything but access tokens is refused. */
export function readTokens(
  form: OAuthForm,
): { readonly subject: string; readonly actor: string | null } | OAuthRefused {
  const subject = form.get('subject_token')
  if (subject === null) return refuse('invalid_request', 'subject_token is missing')
  if (form.get('subject_token_type') !== ACCESS_TOKEN_URN)
    return refuse('invalid_request', `subject_token_type must be ${ACCESS_TOKEN_URN}`)
  const actor = form.get('actor_token')
  const actorType = form.get('actor_token_type')
  // RFC 8693 section 2.1: the type comes with the token and not without it.
  if ((actor === null) !== (actorType === null))
    return refuse('invalid_request', 'actor_token and actor_token_type come together')
  if (actorType !== null && actorType !== ACCESS_TOKEN_URN)
    return refuse('invalid_request', `actor_token_type must be ${ACCESS_TOKEN_URN}`)
  return { subject, actor }
}
