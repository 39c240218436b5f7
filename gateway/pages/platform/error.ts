/** Error pages, with the status of the corresponding problem document and the request id. */
import { type ErrorCode, PROBLEM_TYPES, type Problem } from '../../response/problems.js'
import type { MessageKey } from '../texts/texts.js'
import { type Branding, type Frame, renderPage } from './render.js'

const WORDS: Readonly<Record<number, MessageKey>> = {
  400: 'error.400',
  403: 'error.403',
  404: 'error.404',
  405: 'error.405',
  410: 'error.410',
  429: 'error.429',
  503: 'error.503',
}

/** The error page of a problem. */
export function errorPage(
  problem: Problem,
  acceptLanguage: Frame['acceptLanguage'],
  requestId: string,
): string {
  const { status } = PROBLEM_TYPES[problem.name]
  const key = problem.pageWords ?? WORDS[status] ?? (status < 500 ? 'error.400' : 'error.500')
  return failurePage({ status, key, acceptLanguage, requestId, link: problem.pageLink })
}

type Failure = {
  readonly status: number
  readonly key: MessageKey
  readonly acceptLanguage: Frame['acceptLanguage']
  readonly uiLocales?: string | null | undefined
  readonly requestId: string
  readonly branding?: Branding | null | undefined
  /** An error code for support, if the failure has one. */
  readonly code?: ErrorCode | undefined
  /** A path of the service to continue at. Default: its start page. */
  readonly link?: { readonly path: string; readonly key: MessageKey } | undefined
}

const HOME = { path: '/', key: 'error.home' } as const

/** An error page with its own text. */
export function failurePage(failure: Failure): string {
  const { status, key, acceptLanguage, uiLocales, requestId, branding = null, code } = failure
  const { link = HOME } = failure
  return renderPage(
    'error',
    { titleKey: 'error.title', branding, uiLocales, acceptLanguage },
    { status, key, requestId, link, code: code ?? null },
  )
}
