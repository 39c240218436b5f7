/** How an outcome becomes an answer: the right-hand sides of a route's `replies`. */
import type { z } from 'zod'
import type { ByteStream } from '../../runtime/kernel/stream.js'
import type { HeaderPair } from '../http-exchange.js'
import { type Browser, NO_BROWSER } from '../request/browser.js'
import { PROBLEM_TYPES, type Problem, type ProblemDetails, type ProblemName } from './problems.js'

/** What a mapping may know of the request besides the outcome. */
export type ReplyContext = {
  readonly requestId: string
  /** Public base address of the service, without a trailing slash. */
  readonly baseUrl: string
  readonly path: string
  /** Without the question mark. */
  readonly query: string
  readonly browser: Browser
}

/** For answers that look at nothing. */
export const NO_CONTEXT: ReplyContext = {
  requestId: '',
  baseUrl: '',
  path: '',
  query: '',
  browser: NO_BROWSER,
}

/** An answer before the pipeline adds its own headers. */
export type Rendered =
  | {
      readonly form: 'body'
      readonly status: number
      readonly contentType: string | null
      readonly body: string | Uint8Array | null
      readonly headers?: Readonly<Record<string, string>> | undefined
      /** Strong entity tag in its quotes; a matching If-None-Match turns the answer into 304. */
      readonly etag?: string | undefined
      /** Replaces the route's Cache-Control. */
      readonly cacheControl?: string | undefined
      /** Gives the browser a session, or (null) takes the one it has. */
      readonly session?: string | null | undefined
      /** Replaces the content security policy that goes with the content type. */
      readonly policy?: string | undefined
    }
  | { readonly form: 'problem'; readonly problem: Problem }
  /** Somebody else's answer: their status, headers and body, as they come. */
  | {
      readonly form: 'relayed'
      readonly status: number
      readonly headers: readonly HeaderPair[]
      readonly body: ByteStream | Uint8Array
      /** Length of a stream where it is known; see `StreamedAnswer`. */
      readonly bodyBytes?: number | undefined
      /** What is said in its place when the body breaks off before anything of it was sent. */
      readonly unsent: (reason: string) => Problem
    }
  | {
      readonly form: 'oauth'
      readonly status: number
      readonly error: string
      readonly description: string | undefined
      readonly headers?: Readonly<Record<string, string>> | undefined
    }

/** One possible response, for the OpenAPI document. */
export type ResponseDoc = {
  readonly status: number
  readonly contentType: string | null
  readonly schema: z.ZodType | null
  readonly description?: string | undefined
  readonly problem?: ProblemName | undefined
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

/** A JSON body. `map` gives what `schema` describes; the compiler holds the two together. */
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

/** A JSON body that `write` puts together by hand: the text of what `schema` describes. */
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

/** The same JSON every time, encoded once. */
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

export type ReadyBytes = {
  readonly body: string | Uint8Array
  /** Strong, with its quotes; answers conditional requests with 304. */
  readonly etag?: string | undefined
  readonly maxAgeSecs?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A body that is ready to send, with entity tag and lifetime. `schema` is for the documents. */
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

/** A page. The pipeline adds the strict content security policy. */
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

/** A hosted page and what goes with it. */
export type PageAnswer = {
  readonly html: string
  readonly session?: string | null | undefined
  /** Where its forms may lead to, besides ourselves: origins, and schemes of installed applications. */
  readonly formTargets?: readonly string[] | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** It takes passkeys, which no browser does without script. */
  readonly scripted?: boolean | undefined
  /** CSP sources of a widget that the page takes in. */
  readonly widget?: readonly string[] | undefined
}

/** A hosted page: no script but the one for passkeys, no style but ours, forms that lead only where they must. */
export function page<Outcome>(
  status: number,
  map: (outcome: Outcome, context: ReplyContext) => PageAnswer,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: 'text/html', schema: null }],
    render: (outcome, context) => {
      const answer = map(outcome, context)
      const { html: body, session, formTargets = [], headers, scripted = false } = answer
      return {
        form: 'body',
        status,
        contentType: 'text/html; charset=utf-8',
        body,
        headers,
        session,
        policy: pagePolicy(formTargets, scripted, answer.widget),
      }
    },
  }
}

/** A scheme, or an origin: nothing that could end a directive or begin another. */
const FORM_TARGET =
  /^(?:[a-z][a-z0-9+.-]*:|https?:\/\/(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?)$/

/** Our own script asks us and writes no HTML; that of a widget does as its provider likes. */
const TRUSTED_TYPES = "require-trusted-types-for 'script'; trusted-types 'none'; "
/** https hosts, sub-domains of one included. */
const WIDGET_SOURCE = /^https:\/\/(?:\*\.)?[a-z0-9.-]+(?::[0-9]{1,5})?$/

/**
 * The sources by which a form may lead to a target. Browsers hold every redirect that follows a form to
 * `form-action`, those of the application too, and it may lead on to whatever host it likes: named is
 * the kind of address. (CSP could not name a host that is an IPv6 address either.)
 */
function formSources(target: string): readonly string[] {
  if (target.startsWith('https://')) return ['https:']
  return target.startsWith('http://') ? ['http:', 'https:'] : [target]
}

/** The content security policy of hosted pages (decisions.md 20, headers). */
export function pagePolicy(
  formTargets: readonly string[],
  scripted = false,
  widget: readonly string[] = [],
): string {
  const targets = new Set(
    formTargets.filter((target) => FORM_TARGET.test(target)).flatMap(formSources),
  )
  const sources = widget.filter((source) => WIDGET_SOURCE.test(source))
  const own = scripted ? ["'self'"] : []
  const scripts = [...own, ...sources].join(' ')
  const script = scripts === '' ? '' : `script-src ${scripts}; connect-src ${scripts}; `
  const frames = sources.length === 0 ? '' : `frame-src ${sources.join(' ')}; `
  const types = scripted && sources.length === 0 ? TRUSTED_TYPES : ''
  const styles = ["'self'", ...sources].join(' ')
  return (
    `default-src 'none'; style-src ${styles}; img-src 'self' data:; ${script}${frames}${types}` +
    `form-action ${["'self'", ...targets].join(' ')}; base-uri 'none'; frame-ancestors 'none'`
  )
}

export type Redirect = { readonly location: string; readonly session?: string | null | undefined }

/** 303 See Other: after a form, and between our own pages (decisions.md 7.6). */
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

/** Hands on what an upstream answered, whatever its status. */
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

type Details<Outcome, Value> = Value | ((outcome: Outcome, context: ReplyContext) => Value)

function resolve<Outcome, Value extends object>(
  details: Details<Outcome, Value> | undefined,
  outcome: Outcome,
  context: ReplyContext,
): Value | undefined {
  return typeof details === 'function' ? details(outcome, context) : details
}

/**
 * A problem document of the catalogue. The status must be the catalogue's; it is written out so
 * that a reader of the route sees it.
 */
export function problem<Outcome, Name extends ProblemName>(
  status: (typeof PROBLEM_TYPES)[Name]['status'],
  name: Name,
  details?: Details<Outcome, ProblemDetails>,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: 'application/problem+json', schema: null, problem: name }],
    render: (outcome, context) => ({
      form: 'problem',
      problem: { name, ...resolve(details, outcome, context) },
    }),
  }
}

export type OAuthErrorDetails = {
  readonly description?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A protocol error body: `{"error", "error_description"}` (RFC 6749 section 5.2). */
export function oauthError<Outcome>(
  status: number,
  code: string,
  details?: Details<Outcome, OAuthErrorDetails>,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: 'application/json', schema: null, oauthError: code }],
    render: (outcome, context) => {
      const { description, headers } = resolve(details, outcome, context) ?? {}
      return { form: 'oauth', status, error: code, description, headers }
    },
  }
}

/**
 * One outcome, several answers: picks the rule by a member of the outcome. The keys are complete
 * by type, as the tags of `replies` are.
 */
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
