/**
 * GET /errors/{name}: the page of a problem type, at its type URI (RFC 9457 section 3.1.1), in the language of the
 * browser. Problem documents themselves are in English.
 */
import { z } from 'zod'
import { OAUTH_ERRORS } from '../../../actors/domain/oauth-reasons.js'
import type { I18nSettings } from '../../../actors/domain/i18n/settings.js'
import { filledIn } from '../../../actors/domain/i18n/languages.js'
import type { Locale } from '../../../actors/domain/i18n/locales.js'
import { sharedBody } from '../../response/shared-body.js'
import { chooseLanguage } from '../../pages/platform/language.js'
import { renderPage } from '../../pages/platform/render.js'
import {
  PROBLEM_TEXTS,
  PROBLEM_TYPES,
  problemCode,
  type ProblemName,
} from '../../response/problems.js'
import { wantsPage } from '../../request/browser.js'
import { decodeParams } from '../../router.js'
import { ownRoute, problem, type Rendered, type ResponseDoc, type Route } from '../../route.js'

const Params = z.object({ name: z.string().max(64) })
const Headers = z.object({
  'accept-language': z.string().max(1024).optional(),
  accept: z.string().max(1024).optional(),
})
const PAGE_DOCS: readonly ResponseDoc[] = [{ status: 200, contentType: 'text/html', schema: null }]

export function errorPageRoutes(i18n: I18nSettings): readonly Route[] {
  const shared = {
    method: 'GET',
    tags: ['Operations'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
    headers: Headers,
  } as const
  const localeOf = (headers: unknown): Locale => {
    const header = (headers as z.infer<typeof Headers>)['accept-language'] ?? ''
    return chooseLanguage(null, { header, i18n }).locale
  }
  const list = ownRoute({
    ...shared,
    path: '/errors',
    operationId: 'listProblemTypes',
    summary: 'All problem types, as a page',
    responses: PAGE_DOCS,
    answer: ({ headers }) => pageOf(null, localeOf(headers)),
  })
  const one = ownRoute({
    ...shared,
    path: '/errors/{name}',
    operationId: 'getProblemType',
    summary: 'Explain a problem type or OAuth error: its cause and what to do',
    description:
      'The type of a problem document and the error_uri of an OAuth error lead here. The page of an OAuth error ' +
      'has one anchor for each reason.',
    params: Params,
    responses: [
      ...PAGE_DOCS,
      { status: 404, contentType: 'text/html', schema: null },
      ...problem(404, 'not-found', {}).docs,
    ],
    isPath: (raw, headers) => {
      const name = decodeParams(raw)?.['name'] ?? ''
      const isKnown = isProblemName(name) || isOAuthCode(name.replaceAll('-', '_'))
      if (isKnown || headers === undefined) return isKnown
      return Params.safeParse({ name }).success && name !== '' && wantsPage(headers)
    },
    answer: ({ params, headers }) => {
      const { name } = params as z.infer<typeof Params>
      if (isProblemName(name)) return pageOf(name, localeOf(headers))
      const code = name.replaceAll('-', '_')
      if (isOAuthCode(code)) return oauthPageOf(code)
      // A browser gets the list of those that exist.
      return { ...pageOf(null, localeOf(headers)), status: 404, cacheControl: 'no-store' }
    },
  })
  return [list, one]
}

function isProblemName(name: string): name is ProblemName {
  return Object.hasOwn(PROBLEM_TYPES, name)
}

type OAuthCode = keyof typeof OAUTH_ERRORS

function isOAuthCode(code: string): code is OAuthCode {
  return Object.hasOwn(OAUTH_ERRORS, code)
}

/** A page for each type and language, and one for each OAuth error. */
const pages = new Map<string, Rendered>()

function pageOf(name: ProblemName | null, locale: Locale): Rendered {
  return kept(`${locale} ${name ?? ''}`, () =>
    name === null ? listText(locale) : typeText(name, locale),
  )
}

/** In English, as the answers with this code are. */
function oauthPageOf(code: OAuthCode): Rendered {
  return kept(code, () => oauthText(code))
}

/** Renders a page once. */
function kept(key: string, text: () => string): Rendered {
  const known = pages.get(key)
  if (known !== undefined) return known
  const rendered: Rendered = {
    form: 'body',
    status: 200,
    contentType: 'text/html; charset=utf-8',
    ...sharedBody(text()),
    cacheControl: 'public, max-age=3600',
    headers: { vary: 'Accept-Language' },
  }
  pages.set(key, rendered)
  return rendered
}

const frame = (title: string, locale: Locale) =>
  ({ titleKey: 'error.title', title, branding: null, acceptLanguage: locale }) as const

/** HTML of a text of ours, with the words between backticks as code. */
function marked(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
  return escaped.replaceAll(/`([^`]+)`/g, '<code translate="no" dir="ltr">$1</code>')
}

function typeText(name: ProblemName, locale: Locale): string {
  const { words, types, retry } = PROBLEM_TEXTS[locale]
  const { title, meaning, remedy } = types[name]
  const code = problemCode(name)
  return renderPage('problem-type', frame(title, locale), {
    words,
    status: filledIn(words.status, { status: String(PROBLEM_TYPES[name].status) }),
    code,
    meaning: marked(meaning),
    remedy: marked(remedy),
    rule: marked(retry[PROBLEM_TYPES[name].retry]),
    reasons: isOAuthCode(code) ? reasonsOf(code) : [],
  })
}

function oauthText(code: OAuthCode): string {
  const { meaning } = OAUTH_ERRORS[code]
  return renderPage('oauth-error', frame(code, 'en'), { code, meaning, reasons: reasonsOf(code) })
}

function reasonsOf(code: OAuthCode) {
  const { reasons } = OAUTH_ERRORS[code]
  const explained = Object.entries(reasons as Readonly<Record<string, readonly [string, string]>>)
  return explained.map(([reason, [cause, remedy]]) => ({ reason, cause, remedy }))
}

function listText(locale: Locale): string {
  const { words, types } = PROBLEM_TEXTS[locale]
  const rows = (Object.keys(PROBLEM_TYPES) as ProblemName[]).map((name) => ({
    name,
    status: PROBLEM_TYPES[name].status,
    title: types[name].title,
  }))
  const codes = Object.keys(OAUTH_ERRORS).map((code) => ({ name: code.replaceAll('_', '-'), code }))
  const content = { intro: marked(words.intro), types: rows, codes }
  return renderPage('problem-types', frame(words.all, locale), content)
}
