/**
 * The authorization rules of token exchange (RFC 8693 sections 2, 4.1 and 4.4). All functions are
 * pure: the caller verifies signatures and reads rows. See docs/reference/oauth.md.
 */
import { ACT_DEPTH_MAX, type ActingParty, type Principal } from '../../../domain/principal.js'
import type { ReadToken } from '../issue/access-token.js'
import type { OAuthForm } from '../form.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'

export const ACCESS_TOKEN_URN = 'urn:ietf:params:oauth:token-type:access_token'

/** The authenticated requester of the exchange. */
export type Exchanger =
  | {
      readonly kind: 'application'
      readonly id: string
      readonly audience: string
      readonly scopes: readonly string[]
      readonly selfRegistered: boolean
    }
  | { readonly kind: 'agent'; readonly id: string }

type ExchangeRequest = {
  readonly subject: ReadToken
  readonly exchanger: Exchanger
  /** The agent of the actor token, or null without one. */
  readonly actor: string | null
  /** The next agent, from the `may_act` parameter. */
  readonly mayAct: string | null
}

type ExchangeVerdict =
  /** Same actors: the subject itself or the agent that acts already. */
  | { readonly tag: 'kept' }
  /** The named agent takes over from the agent that named it. */
  | { readonly tag: 'handed_on'; readonly actors: readonly ActingParty[] }
  /** The agent acts for a user, limited by the user's delegation. */
  | { readonly tag: 'delegated'; readonly agentId: string }
  | OAuthRefused

/** The verified tokens of a request, its requester and the decision about them. */
export type VerifiedExchange = {
  readonly subject: ReadToken
  readonly exchanger: Exchanger
  readonly actor: ReadToken | null
  readonly verdict: Exclude<ExchangeVerdict, OAuthRefused>
  readonly mayAct: string | null
}

/** Decides whether the exchange is allowed, before scopes, audience and lifetime are checked. */
export function judgeExchange(request: ExchangeRequest): ExchangeVerdict {
  const { actors } = request.subject.principal
  const verdict =
    actors.length > 0 ? judgeDelegatedToken(request, actors) : judgeDirectToken(request)
  if (request.mayAct === null || verdict.tag === 'oauth_refused') return verdict
  if (verdict.tag !== 'kept' || actors.length === 0)
    return refuse(
      'invalid_request',
      'may_act needs a delegated token of the acting agent',
      'parameter_invalid',
    )
  return request.mayAct === actors[0]?.sub
    ? refuse('invalid_request', 'may_act names the agent that already acts', 'parameter_invalid')
    : verdict
}

function judgeDelegatedToken(
  { subject, exchanger, actor }: ExchangeRequest,
  actors: readonly ActingParty[],
): ExchangeVerdict {
  if (exchanger.kind !== 'agent' || actors[0]?.issuer !== undefined)
    return refuse(
      'consent_required',
      'only the acting agent may exchange this token',
      'actor_not_allowed',
    )
  if (exchanger.id === actors[0]?.sub) return { tag: 'kept' }
  if (subject.mayAct !== exchanger.id)
    return refuse(
      'consent_required',
      'the acting agent did not name the requesting agent in may_act',
      'actor_not_allowed',
    )
  if (actor === null)
    return refuse(
      'invalid_request',
      'actor_token is needed to take over from another agent',
      'parameter_missing',
    )
  if (actors.length >= ACT_DEPTH_MAX)
    return refuse(
      'invalid_request',
      `an actor chain has at most ${ACT_DEPTH_MAX} actors`,
      'parameter_invalid',
    )
  return { tag: 'handed_on', actors: [{ sub: exchanger.id, subjectType: 'agent' }, ...actors] }
}

function judgeDirectToken({ subject, exchanger, actor }: ExchangeRequest): ExchangeVerdict {
  const { principal } = subject
  const { subjectType } = principal
  const isOwn = isOwnToken(principal, exchanger)
  if (actor === null || principal.subject === actor) {
    return isOwn
      ? { tag: 'kept' }
      : refuse(
          'consent_required',
          'the token was not issued to this client or for its audience',
          'actor_not_allowed',
        )
  }
  // An application may exchange a user's token on behalf of an agent if it may exchange it itself.
  const mayActFor = exchanger.kind === 'agent' ? exchanger.id === actor : isOwn
  return subjectType === 'human' && mayActFor
    ? { tag: 'delegated', agentId: actor }
    : refuse(
        'consent_required',
        'the agent has no permission to act for this subject',
        'delegation_missing',
      )
}

/** True if the token was issued to the client, or is for the client's audience. */
function isOwnToken({ clientId, subjectType, audience }: Principal, exchanger: Exchanger): boolean {
  if (clientId === exchanger.id) return true
  return (
    exchanger.kind === 'application' &&
    subjectType === 'human' &&
    audience.includes(exchanger.audience)
  )
}

/**
 * The scopes of the new token: the requested ones, or all that every bound allows. Null if a requested
 * scope exceeds a bound, or if no scope is left.
 */
export function boundedScopes(
  requested: readonly string[] | null,
  bounds: readonly (readonly string[])[],
): readonly string[] | null {
  const [first = [], ...others] = bounds
  const most = first.filter((scope) => others.every((bound) => bound.includes(scope)))
  if (requested !== null && !requested.every((scope) => most.includes(scope))) return null
  const scopes = requested ?? most
  return scopes.length === 0 ? null : scopes
}

/** Reads both tokens and their types. Only access tokens are supported. */
export function readTokens(
  form: OAuthForm,
): { readonly subject: string; readonly actor: string | null } | OAuthRefused {
  const subject = form.get('subject_token')
  if (subject === null)
    return refuse('invalid_request', 'subject_token is missing', 'parameter_missing')
  if (form.get('subject_token_type') !== ACCESS_TOKEN_URN)
    return refuse(
      'invalid_request',
      `subject_token_type must be ${ACCESS_TOKEN_URN}`,
      'parameter_invalid',
    )
  const actor = form.get('actor_token')
  const actorType = form.get('actor_token_type')
  // RFC 8693 section 2.1: actor_token_type is required with actor_token and forbidden without it.
  if ((actor === null) !== (actorType === null))
    return refuse(
      'invalid_request',
      'actor_token and actor_token_type must be sent together',
      'parameter_missing',
    )
  if (actorType !== null && actorType !== ACCESS_TOKEN_URN)
    return refuse(
      'invalid_request',
      `actor_token_type must be ${ACCESS_TOKEN_URN}`,
      'parameter_invalid',
    )
  return { subject, actor }
}
