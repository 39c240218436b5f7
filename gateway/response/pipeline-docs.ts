/** Which errors the pipeline answers on a route. */
import { demandsOf } from '../request/authenticate.js'
import { controlPlaneTokensOf } from '../request/control-plane-tokens.js'
import type { ResponseDoc, Route } from '../route.js'
import {
  hasOauthForm,
  oauthCode,
  PROBLEM_MEDIA_TYPE,
  PROBLEM_TYPES,
  type ProblemName,
} from './problems.js'
import { SCIM_MEDIA_TYPE, ScimError } from './scim-errors.js'

const BODY_ERRORS = ['payload-too-large', 'unsupported-media-type', 'request-timeout'] as const
const PAGE_ERRORS = [
  ...(['bad-request', 'forbidden', 'rate-limited'] as const),
  ...(['server-error', 'service-unavailable', 'gateway-timeout'] as const),
]

/** Error responses of pages. Negotiated routes also have OAuth errors. */
function pageDocs({ errors, body, security }: Route): readonly ResponseDoc[] {
  const names = [...PAGE_ERRORS, ...(body === undefined ? [] : BODY_ERRORS)]
  const docs: ResponseDoc[] = names.map((name) => ({
    status: PROBLEM_TYPES[name].status,
    contentType: 'text/html',
    schema: null,
  }))
  if (errors === 'negotiated') docs.push(...names.map(oauthDoc))
  if (security.scheme === 'session') docs.push(SIGN_IN)
  return docs
}

/** The errors of the pipeline on SCIM routes. */
function scimDocs({ body }: Route, hasInput: boolean): readonly ResponseDoc[] {
  const statuses = [401, 403, 429, 500, 503, 504]
  if (hasInput) statuses.push(400)
  if (body !== undefined) statuses.push(408, 413, 415)
  return statuses.map((status) => ({ status, contentType: SCIM_MEDIA_TYPE, schema: ScimError }))
}

/** The form of a problem on OAuth endpoints. */
function oauthDoc(name: ProblemName): ResponseDoc {
  const { status } = PROBLEM_TYPES[name]
  if (!hasOauthForm(status)) return problemDoc(name)
  return { status, contentType: 'application/json', schema: null, oauthError: oauthCode(name) }
}

function problemDoc(name: ProblemName): ResponseDoc {
  const { status } = PROBLEM_TYPES[name]
  return { status, contentType: PROBLEM_MEDIA_TYPE, schema: null, problem: name }
}

/** The redirect of a page without a session to sign-in. */
const SIGN_IN: ResponseDoc = { status: 303, contentType: null, schema: null }

/** The responses of the pipeline before the actor is asked. */
export function pipelineDocs(route: Route): readonly ResponseDoc[] {
  const names: ProblemName[] = []
  // An Idempotency-Key is validated input too.
  const hasInput =
    route.idempotent === true ||
    [route.params, route.query, route.headers, route.body].some((p) => p !== undefined)
  // Their declarations have all responses.
  if (route.errors === 'json-rpc') return []
  if (route.errors === 'page' || route.errors === 'negotiated') return pageDocs(route)
  if (route.errors === 'scim') return scimDocs(route, hasInput)
  if (hasInput && route.errors !== 'oauth') names.push('bad-request')
  const demanded = demandsOf(route.security)
  if (demanded !== null || route.security.scheme === 'metrics') {
    const { scopes = [], subjects, direct = 'either' } = demanded ?? {}
    names.push('unauthorized', 'token-expired', 'token-revoked')
    if (route.security.scheme === 'metrics' || scopes.length > 0) names.push('insufficient-scope')
    if (
      subjects !== undefined ||
      direct !== 'either' ||
      controlPlaneTokensOf(route.security) !== 'owner'
    )
      names.push('forbidden')
  }
  if (route.security.scheme === 'page_call') {
    names.push('unauthorized', 'token-expired', 'token-revoked', 'insufficient-scope', 'forbidden')
  }
  const isPagePart = route.security.scheme === 'browser' || route.security.scheme === 'session'
  // The form is from another site, or without the token of its page.
  if (isPagePart && route.body !== undefined) names.push('forbidden')
  if (route.security.scheme === 'session') names.push('unauthorized')
  if (route.body !== undefined) names.push(...BODY_ERRORS)
  if (route.throttle !== 'none') names.push('rate-limited')
  names.push('server-error', 'service-unavailable', 'gateway-timeout', ...(route.documented ?? []))
  const docs = names.map(problemDoc)
  if (route.security.scheme === 'session') docs.push(SIGN_IN)
  if (hasInput && route.errors === 'oauth') {
    const oauthError = 'invalid_request'
    docs.push({ status: 400, contentType: 'application/json', schema: null, oauthError })
  }
  return docs
}
