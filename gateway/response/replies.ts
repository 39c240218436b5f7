/** Rules that turn an outcome into an answer, for the `replies` of a route. */
import type { z } from 'zod'
import type { RefusedRequester } from '../../actors/domain/oauth-reasons.js'
import type { ByteStream } from '../../runtime/kernel/stream.js'
import type { HeaderPair } from '../http-exchange.js'
import { type Browser, NO_BROWSER } from '../request/browser.js'
import {
  type ErrorCode,
  PROBLEM_TYPES,
  type Problem,
  type ProblemDetails,
  type ProblemName,
} from './problems.js'

/** Parts of the request for rules. */
export type ReplyContext = {
  readonly requestId: string
  /** Public base URL of the service, without a trailing slash. */
  readonly baseUrl: string
  readonly path: string
  /** Without the question mark. */
  readonly query: string
  readonly browser: Browser
}

/** For rules that do not use the request. */
export const NO_CONTEXT: ReplyContext = {
  requestId: '',
  baseUrl: '',
  path: '',
  query: '',
  browser: NO_BROWSER,
}

/** An answer without the headers of the pipeline. */
export type Rendered =
  | {
      readonly form: 'body'
      readonly status: number
      readonly contentType: string | null
      readonly body: string | Uint8Array | null
      readonly headers?: Readonly<Record<string, string>> | undefined
      /** Strong entity tag with quotes. A matching If-None-Match gets 304. */
      readonly etag?: string | undefined
      /** Replaces the route's Cache-Control. */
      readonly cacheControl?: string | undefined
      /** Sets or (null) deletes the session cookie. */
      readonly session?: string | null | undefined
      /** Set-Cookie values. */
      readonly cookies?: readonly string[] | undefined
      /** Replaces the content security policy of the content type. */
      readonly policy?: string | undefined
      /** The word of a refusal that strangers can cause: one line a second is logged for it. */
      readonly fault?: string | undefined
    }
  | { readonly form: 'problem'; readonly problem: Problem }
  /** The response of an upstream: its status, headers and body. */
  | {
      readonly form: 'relayed'
      /** A body that the service writes while it makes it. */
      readonly isOwn?: boolean | undefined
      readonly status: number
      readonly headers: readonly HeaderPair[]
      readonly body: ByteStream | Uint8Array
      /** Length of a stream if it is known, see `StreamedAnswer`. */
      readonly bodyBytes?: number | undefined
      /** The problem if the body fails before anything was sent. */
      readonly unsent: (reason: string) => Problem
    }
  | {
      readonly form: 'oauth'
      readonly status: number
      readonly error: ErrorCode
      readonly description: string | undefined
      readonly headers?: Readonly<Record<string, string>> | undefined
      /** The check that failed: the anchor of `error_uri`, and a member of the log line. */
      readonly reason?: string | undefined
      /** The same for the log line alone. */
      readonly logReason?: string | undefined
      readonly requester?: RefusedRequester | undefined
    }

/** One possible response, for OpenAPI. */
export type ResponseDoc = {
  readonly status: number
  readonly contentType: string | null
  readonly schema: z.ZodType | null
  readonly description?: string | undefined
  readonly problem?: ProblemName | undefined
  /** The `error` member, where it differs from the code of the problem type. */
  readonly code?: string | undefined
  readonly oauthError?: string | undefined
}

export interface ReplyRule<in Outcome> {
  readonly docs: readonly ResponseDoc[]
  readonly render: (outcome: Outcome, context: ReplyContext) => Rendered
}

type Headers<Outcome> = (
  outcome: Outcome,
  context: ReplyContext,
) => Readonly<Record<string, string>>

/** A JSON body. The compiler checks that `map` returns what `schema` describes. */
export function reply<Outcome, Schema extends z.ZodType>(
  status: number,
  schema: Schema,
  map: (outcome: Outcome, context: ReplyContext) => z.input<Schema>,
  headers?: Headers<Outcome>,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: 'application/json', schema }],
    render: (outcome, context) => ({
      form: 'body',
      status,
      contentType: 'application/json',
      body: JSON.stringify(map(outcome, context)),
      headers: headers?.(outcome, context),
    }),
  }
}

/** A refusal that strangers can cause in any number. One line a second is logged for each word of `fault`. */
export const refusal = <Outcome>(
  told: ReplyRule<Outcome>,
  fault: (outcome: Outcome) => string,
): ReplyRule<Outcome> => ({
  docs: told.docs,
  render(outcome, context) {
    const rendered = told.render(outcome, context)
    return rendered.form === 'body' ? { ...rendered, fault: fault(outcome) } : rendered
  },
})

/** A JSON body that `write` serialises itself, as `schema` describes it. */
export function written<Outcome, Schema extends z.ZodType>(
  status: number,
  schema: Schema,
  write: (outcome: Outcome) => string,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: 'application/json', schema }],
    render: (outcome) => ({
      form: 'body',
      status,
      contentType: 'application/json',
      body: write(outcome),
    }),
  }
}

/** A constant JSON body, serialised once. */
export function constant<Schema extends z.ZodType>(
  status: number,
  schema: Schema,
  value: z.input<Schema>,
): ReplyRule<unknown> {
  const rendered: Rendered = {
    form: 'body',
    status,
    contentType: 'application/json',
    body: JSON.stringify(value),
  }
  return {
    docs: [{ status, contentType: 'application/json', schema }],
    render: () => rendered,
  }
}

type ReadyBytes = {
  readonly body: string | Uint8Array
  /** Strong entity tag with quotes, for conditional requests. */
  readonly etag?: string | undefined
  readonly maxAgeSecs?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A serialised body with entity tag and lifetime. `schema` is for OpenAPI. */
export function bytes<Outcome>(
  status: number,
  contentType: string,
  map: (outcome: Outcome, context: ReplyContext) => ReadyBytes,
  schema: z.ZodType | null = null,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType, schema }],
    render: (outcome, context) => {
      const { body, etag, maxAgeSecs, headers } = map(outcome, context)
      return {
        form: 'body',
        status,
        contentType,
        body,
        headers,
        etag,
        cacheControl: maxAgeSecs === undefined ? undefined : `public, max-age=${maxAgeSecs}`,
      }
    },
  }
}

/** An HTML page with the strict content security policy of the pipeline. */
export function html<Outcome>(
  status: number,
  map: (outcome: Outcome, context: ReplyContext) => string,
  headers?: Headers<Outcome>,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: 'text/html', schema: null }],
    render: (outcome, context) => ({
      form: 'body',
      status,
      contentType: 'text/html; charset=utf-8',
      body: map(outcome, context),
      headers: headers?.(outcome, context),
    }),
  }
}

/** A hosted page with its session and policy. */
export type PageAnswer = {
  readonly html: string
  readonly session?: string | null | undefined
  /** Further targets of its forms: origins, and URI schemes of installed applications. */
  readonly formTargets?: readonly string[] | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** True if the page runs scripts of ours that `html` does not name. */
  readonly scripted?: boolean | undefined
  /** URLs that frames of the page load. */
  readonly frames?: readonly string[] | undefined
  /** CSP sources of an embedded widget. */
  readonly widget?: readonly string[] | undefined
}

/** How a page names a script of ours (gateway/pages/templates/platform/frame.eta). */
const OWN_SCRIPT = '<script src="/auth/script/'

/** A hosted page. Its policy admits the scripts that it names, the own style sheet, and the form targets. */
export function page<Outcome>(
  status: number,
  map: (outcome: Outcome, context: ReplyContext) => PageAnswer,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: 'text/html', schema: null }],
    render: (outcome, context) => {
      const answer = map(outcome, context)
      const { html: body, session, formTargets = [], headers } = answer
      const scripted = answer.scripted === true || body.includes(OWN_SCRIPT)
      return {
        form: 'body',
        status,
        contentType: 'text/html; charset=utf-8',
        body,
        headers,
        session,
        policy: pagePolicy(formTargets, scripted, answer.widget, answer.frames),
      }
    },
  }
}

/** A URI scheme or an origin. Other text could end a CSP directive and start another. */
const FORM_TARGET =
  /^(?:[a-z][a-z0-9+.-]*:|https?:\/\/(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?)$/

/** The own script writes no HTML. Scripts of widgets may, so they get no Trusted Types. */
const TRUSTED_TYPES = "require-trusted-types-for 'script'; trusted-types 'none'; "
/** CSP has no syntax for IPv6 hosts. */
const ORIGIN = /^https?:\/\/[a-z0-9.-]+(?::[0-9]{1,5})?$/
const originOf = (url: string): string => new URL(url).origin

/** https hosts, optionally with all sub-domains. */
const WIDGET_SOURCE = /^https:\/\/(?:\*\.)?[a-z0-9.-]+(?::[0-9]{1,5})?$/

/**
 * The `form-action` sources of a target. Browsers apply `form-action` to all redirects after a form, also to redirects
 * by the application, which may go to any host. So the source is the scheme. (CSP has no syntax for IPv6 hosts either.)
 */
function formSources(target: string): readonly string[] {
  if (target.startsWith('https://')) return ['https:']
  return target.startsWith('http://') ? ['http:', 'https:'] : [target]
}

const OWN_IMAGES = "img-src 'self' data:"

/** A page policy that also admits images of an origin, such as the object store of tenant assets. */
export function withImagesOf(policy: string, origin: string): string {
  return policy.replace(OWN_IMAGES, `${OWN_IMAGES} ${origin}`)
}

/** The content security policy of hosted pages (docs/reference/http.md, Headers). */
export function pagePolicy(
  formTargets: readonly string[],
  scripted = false,
  widget: readonly string[] = [],
  frames: readonly string[] = [],
): string {
  const targets = new Set(
    formTargets.filter((target) => FORM_TARGET.test(target)).flatMap(formSources),
  )
  const sources = widget.filter((source) => WIDGET_SOURCE.test(source))
  const own = scripted ? ["'self'"] : []
  const scripts = [...own, ...sources].join(' ')
  const script = scripts === '' ? '' : `script-src ${scripts}; connect-src ${scripts}; `
  const framed = new Set([...sources, ...frames.map(originOf).filter((one) => ORIGIN.test(one))])
  const frameSources = framed.size === 0 ? '' : `frame-src ${[...framed].join(' ')}; `
  const types = scripted && sources.length === 0 ? TRUSTED_TYPES : ''
  const styles = ["'self'", ...sources].join(' ')
  return (
    `default-src 'none'; style-src ${styles}; ${OWN_IMAGES}; font-src 'self'; ${script}${frameSources}${types}` +
    `form-action ${["'self'", ...targets].join(' ')}; base-uri 'none'; frame-ancestors 'none'`
  )
}

type Redirect = { readonly location: string; readonly session?: string | null | undefined }

/** 303 See Other: after a form, and between pages of the service. */
export function seeOther<Outcome>(
  map: (outcome: Outcome, context: ReplyContext) => Redirect,
): ReplyRule<Outcome> {
  return {
    docs: [{ status: 303, contentType: null, schema: null }],
    render: (outcome, context) => {
      const { location, session } = map(outcome, context)
      return {
        form: 'body',
        status: 303,
        contentType: null,
        body: null,
        headers: { location },
        session,
      }
    },
  }
}

/** No body: 204, 202 and redirects. */
export function empty<Outcome>(status: number, headers?: Headers<Outcome>): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: null, schema: null }],
    render: (outcome, context) => ({
      form: 'body',
      status,
      contentType: null,
      body: null,
      headers: headers?.(outcome, context),
    }),
  }
}

/** Relays the response of an upstream with its status. */
export function relayed<Outcome>(
  description: string,
  map: (outcome: Outcome) => Omit<Extract<Rendered, { form: 'relayed' }>, 'form' | 'unsent'>,
  unsent: (reason: string) => Problem,
): ReplyRule<Outcome> {
  return {
    docs: [{ status: 200, contentType: '*/*', schema: null, description }],
    render: (outcome) => ({ form: 'relayed', ...map(outcome), unsent }),
  }
}

/** A body that the service writes while it makes it: 200 with one of these media types. */
export function chunked<Outcome extends { readonly body: ByteStream }>(
  contentTypes: readonly string[],
  headersOf: (outcome: Outcome) => readonly HeaderPair[],
): ReplyRule<Outcome> {
  return {
    docs: contentTypes.map((contentType) => ({ status: 200, contentType, schema: null })),
    render: (outcome) => ({
      form: 'relayed',
      isOwn: true,
      status: 200,
      headers: headersOf(outcome),
      body: outcome.body,
      unsent: () => ({ name: 'server-error' }),
    }),
  }
}

type Details<Outcome, Value> = Value | ((outcome: Outcome, context: ReplyContext) => Value)

function resolve<Outcome, Value extends object>(
  details: Details<Outcome, Value> | undefined,
  outcome: Outcome,
  context: ReplyContext,
): Value | undefined {
  return typeof details === 'function' ? details(outcome, context) : details
}

/** A problem document of the catalogue. `status` repeats the catalogue's for readers of the route. */
export function problem<Outcome, Name extends ProblemName>(
  status: (typeof PROBLEM_TYPES)[Name]['status'],
  name: Name,
  details?: Details<Outcome, ProblemDetails<Name>>,
): ReplyRule<Outcome>
export function problem<Outcome>(
  status: number,
  name: ProblemName,
  details?: Details<Outcome, ProblemDetails>,
): ReplyRule<Outcome> {
  return {
    docs: [
      {
        status,
        contentType: 'application/problem+json',
        schema: null,
        problem: name,
        code: typeof details === 'object' ? details.error : undefined,
      },
    ],
    render: (outcome, context) => ({
      form: 'problem',
      problem: { name, outcome: wordOf(outcome), ...resolve(details, outcome, context) } as Problem,
    }),
  }
}

type OAuthErrorDetails = {
  readonly description?: string | undefined
  readonly logReason?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A protocol error body: `{"error", "error_description"}` (RFC 6749 section 5.2). */
export function oauthError<Outcome>(
  status: number,
  code: ErrorCode,
  details?: Details<Outcome, OAuthErrorDetails>,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: 'application/json', schema: null, oauthError: code }],
    render: (outcome, context) => {
      const told = resolve(details, outcome, context)
      return {
        form: 'oauth',
        status,
        error: code,
        description: told?.description,
        headers: told?.headers,
        logReason: told?.logReason,
        ...explained(outcome),
      }
    },
  }
}

function wordOf(outcome: unknown): string | undefined {
  const { reason, tag } = (outcome ?? {}) as Partial<Record<'reason' | 'tag', string>>
  return reason ?? tag
}

/** The reason and the sender of a refusal, which outcomes of the tokens actor have. */
function explained(outcome: unknown): {
  readonly reason: string | undefined
  readonly requester: RefusedRequester | undefined
} {
  const { reason, requester } = outcome as {
    readonly reason?: string
    readonly requester?: RefusedRequester
  }
  return { reason, requester }
}

/** Chooses between rules by a member of the outcome. The type requires a rule for each key. */
export function choice<Outcome, Key extends string>(
  pick: (outcome: Outcome) => Key,
  rules: { readonly [K in Key]: ReplyRule<Outcome> },
): ReplyRule<Outcome> {
  const all: readonly ReplyRule<Outcome>[] = Object.values(rules)
  return {
    docs: all.flatMap(({ docs }) => docs),
    render: (outcome, context) => rules[pick(outcome)].render(outcome, context),
  }
}
