/**
 * Renders pages with eta templates, which escape all values. The templates in `gateway/pages/templates/` are read
 * from the source tree and compiled at start.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Eta } from 'eta'
import { filledIn } from '../../../actors/domain/languages.js'
import type { Locale } from '../../../actors/domain/locales.js'
import type { MessageKey } from '../catalogue/en.js'
import { chooseLanguage, type Language } from './language.js'
import { PASSKEY_SCRIPT } from './script.js'
import { BRAND_PATH, STYLE_PATH } from './style.js'

const FOLDER = fileURLToPath(new URL('../../../../gateway/pages/templates/', import.meta.url))

const eta = new Eta({ autoEscape: true, useWith: false, cache: true })
for (const file of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.eta')) continue
  eta.loadTemplate(`@${basename(file, '.eta')}`, readFileSync(join(FOLDER, file), 'utf8'))
}

/** The branding of the tenant of a page. */
export type Branding = {
  readonly name: string
  /** `#rrggbb`, or null for the default. */
  readonly color: string | null
  /** `data:` URI, or null. */
  readonly logo: string | null
  /** The language for browsers that request no supported one. Null: English. */
  readonly locale: Locale | null
  /** An address or page for support, or null. */
  readonly supportContact: string | null
  /** Links at the end of the page. Default: none. */
  readonly links?: readonly { readonly label: string; readonly url: string }[] | undefined
}

/** Parameters of the page frame. `titleKey` is the title of the window and the heading. */
export type Frame = {
  readonly titleKey: MessageKey
  /** An untranslated title, in place of `titleKey`. */
  readonly title?: string | undefined
  readonly branding: Branding | null
  readonly uiLocales?: string | null | undefined
  readonly acceptLanguage: string | undefined
  /** The fault of the form and its field. It is shown first, with a link to the field. */
  readonly error?: { readonly key: MessageKey; readonly field: string | null } | undefined
  /** True if the page uses passkeys. */
  readonly scripted?: boolean | undefined
  /** Target of an immediate redirect by the page: a path of the service or an https URL. */
  readonly onward?: string | undefined
  /** The value of `{wait}` in `error`. */
  readonly retryAfterSecs?: number | undefined
}

type Names = Readonly<Record<string, string>>

const escaped = (text: string) => eta.config.escapeFunction(text)

/**
 * HTML of a text in which names are marked. A name that a third party chose could read like the text around it, and
 * its text direction must not affect that text (HTML, `bdi`).
 */
function withNames(words: string, names: Names): string {
  const marked = Object.entries(names).map(([key, name]) => [
    key,
    `<bdi class="name">${escaped(name)}</bdi>`,
  ])
  return filledIn(escaped(words), Object.fromEntries(marked))
}

/**
 * Renders a template within the frame. In a template, `it.say(key)` and `it.time(date)` return text,
 * `it.scopeText(scope)` says what a scope permits, `it.sayWithNames(key, names)` returns HTML with marked names, `it.frame` is the frame, and the members of
 * `content` are members of `it`. A page includes its parts with `include('@page-part', it)`.
 */
export function renderPage(
  template: string,
  frame: Frame,
  content: Readonly<Record<string, unknown>>,
): string {
  const { uiLocales, acceptLanguage, branding } = frame
  const { locale, say, scopeText, time, minutes, lasting }: Language = chooseLanguage(
    uiLocales,
    acceptLanguage,
    branding?.locale,
  )
  const sayWithNames = (key: MessageKey, names: Names) => withNames(say(key), names)
  const shared = { frame, locale, say, scopeText, sayWithNames, time, lasting }
  const body = eta.render(`@${template}`, { ...content, ...shared })
  const color = branding?.color ?? null
  const title = frame.title ?? say(frame.titleKey)
  return eta.render('@frame', {
    ...shared,
    page: template,
    // Screen readers read the title first when a form is shown again with an error (WCAG technique G199).
    heading: title,
    title: frame.error === undefined ? title : say('common.error.title', { title }),
    wait: minutes(frame.retryAfterSecs ?? 0),
    body,
    style: STYLE_PATH,
    script: frame.scripted === true ? PASSKEY_SCRIPT : null,
    brand: color === null ? null : `${BRAND_PATH}/${color.slice(1)}`,
  })
}
