/**
 * Renders pages with eta templates, which escape all values and change nothing else: what a person approves is what is
 * sent. The templates in `gateway/pages/templates/` are read
 * from the source tree and compiled at start.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { shownEmail } from '../../../actors/domain/email.js'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Eta } from 'eta'
import { filledIn, type TextValues } from '../../../actors/domain/i18n/languages.js'
import type { Locale } from '../../../actors/domain/i18n/locales.js'
import type { PageTexts } from '../../../actors/domain/tenants/branding.js'
import type { MessageKey } from '../texts/texts.js'
import { type BrowserLanguages, chooseLanguage, type Language } from './language.js'
import { CONTROLS_SCRIPT, PASSKEY_SCRIPT } from './script.js'
import { PRELOADED_FONT } from './fonts.js'
import { icon, MARK, scopeIcon } from './icons.js'
import { BRAND_PATH, monogramClass, STYLE_PATH } from './style.js'

const FOLDER = fileURLToPath(new URL('../../../../gateway/pages/templates/', import.meta.url))

const eta = new Eta({ autoEscape: true, useWith: false, cache: true })
for (const file of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.eta')) continue
  eta.loadTemplate(`@${basename(file, '.eta')}`, readFileSync(join(FOLDER, file), 'utf8'))
}

/** The branding of the tenant of a page. */
export type Branding = {
  /** The id of the tenant. It chooses the colour of the monogram. */
  readonly id: string
  readonly name: string
  /** `#rrggbb`, or null for the default. */
  readonly color: string | null
  /** `data:` URI, path of the service or https URL, or null. */
  readonly logo: string | null
  /** Path of the service or https URL. Default: ours. */
  readonly favicon?: string | null | undefined
  /** The language for browsers that request no supported one. Null: English. */
  readonly locale: Locale | null
  /** An address or page for support, or null. */
  readonly supportContact: string | null
  /** Links at the end of the page. Default: none. */
  readonly links?: readonly { readonly label: string; readonly url: string }[] | undefined
  /** Texts of the tenant. Default: none. */
  readonly texts?: PageTexts | undefined
}

/** Parameters of the page frame. `titleKey` is the title of the window and the heading. */
export type Frame = {
  readonly titleKey: MessageKey
  /** An untranslated title, in place of `titleKey`. */
  readonly title?: string | undefined
  readonly branding: Branding | null
  readonly uiLocales?: string | null | undefined
  /** The preferences of the browser. A string is Accept-Language. */
  readonly acceptLanguage: BrowserLanguages | string | undefined
  /** The fault of the form and its field. It is shown first, with a link to the field. */
  readonly error?: { readonly key: MessageKey; readonly field: string | null } | undefined
  /** True if the page uses passkeys. */
  readonly scripted?: boolean | undefined
  /** `sections`: a wide page with panels. Default: one card. */
  readonly layout?: 'card' | 'sections' | undefined
  /** Where the page leads once it is loaded, with its frames: a path of the service or a URL. */
  readonly onward?: string | undefined
  /** The frame of the console with its navigation, in place of the card. */
  readonly console?: ConsoleFrame | undefined
  /** The value of `{wait}` in `error`. */
  readonly retryAfterSecs?: number | undefined
}

/** What the frame of the console shows around a page. */
type ConsoleFrame = {
  /** Path of its stylesheet. */
  readonly style: string
  readonly tenantName: string
  readonly person: string
  readonly csrf: string
  readonly groups: readonly {
    readonly title: MessageKey
    readonly links: readonly {
      readonly title: MessageKey
      readonly path: string
      readonly here: boolean
    }[]
  }[]
  /** Links to the pages above this one. */
  readonly trail: readonly { readonly title: string; readonly path: string }[]
  readonly curl: string | null
  /** The page reloads itself after this time. */
  readonly refreshSecs: number | null
}

type Names = Readonly<Record<string, string>>

/** Values of a text, with the domain of an email address in letters. */
function withLetters<Values extends TextValues | undefined>(values: Values): Values {
  const email = values?.['email']
  return typeof email === 'string' ? { ...values, email: shownEmail(email) } : values
}

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

/** Controls that use a script: password fields, copying, recovery codes, forms that are sent once, pages that lead on. */
const CONTROLS =
  / (?:data-(?:reveal|codes|copy|print|onward-within)[ =]|data-once>|class="answers")/

/** The page on which a tenant may have its own texts. */
const SIGN_IN_PAGE = 'login'

const segments = new Intl.Segmenter()

/** The letter and class of a tenant's monogram. The tenant's colour takes precedence. */
export function monogramOf({ id, name, color }: Pick<Branding, 'id' | 'name' | 'color'>) {
  const [first] = segments.segment(name.trim())
  return {
    letter: (first?.segment ?? '?').toLocaleUpperCase(),
    className: color === null ? monogramClass(id) : 'own',
  }
}

/** HTML of a time, relative to `now` and in full as its title. */
function relativeHtml({ time, relativeTime }: Language, moment: Date, now: Date): string {
  const full = escaped(time(moment))
  return `<time datetime="${moment.toISOString()}" title="${full}">${escaped(relativeTime(moment, now))}</time>`
}

/**
 * Renders a template within the frame. In a template, `it.say(key)` and `it.time(date)` return text, `it.shownEmail(address)` is
 * an email address with its domain in letters, as a value `email` of a text is,
 * `it.scopeText(scope)` says what a scope permits. HTML comes from `it.sayWithNames(key, names)`, `it.sayWithTimes(key, times,
 * now)`, `it.relative(time, now)`, `it.icon(name)` and `it.scopeIcon(scope)`. `it.frame` is the frame, and the members of `content` are members of `it`. A page includes its parts with `include('@page-part', it)`.
 */
export function renderPage(
  template: string,
  frame: Frame,
  content: Readonly<Record<string, unknown>>,
): string {
  const { uiLocales, acceptLanguage, branding } = frame
  const language = chooseLanguage(uiLocales, acceptLanguage, branding?.locale)
  const { locale, direction, scopeText, time, minutes, lasting } = language
  const say: Language['say'] = (key, values) => language.say(key, withLetters(values))
  const sayWithNames = (key: MessageKey, names: Names) =>
    withNames(language.say(key), withLetters(names))
  const relative = (moment: Date, now: Date) => relativeHtml(language, moment, now)
  /** The text of a key with times, each relative to `now`. */
  const sayWithTimes = (key: MessageKey, times: Readonly<Record<string, Date>>, now: Date) => {
    const marked = Object.entries(times).map(([name, moment]) => [name, relative(moment, now)])
    return filledIn(escaped(say(key)), Object.fromEntries(marked))
  }
  const shared = {
    frame,
    locale,
    direction,
    say,
    scopeText,
    sayWithNames,
    sayWithTimes,
    relative,
    time,
    lasting,
    icon,
    scopeIcon,
    monogramOf,
    shownEmail,
  }
  const own = template === SIGN_IN_PAGE ? branding?.texts?.[locale] : undefined
  const body = eta.render(`@${template}`, {
    ...content,
    ...shared,
    tenantNote: own?.sign_in_note ?? null,
  })
  const color = branding?.color ?? null
  const title = frame.title ?? say(frame.titleKey)
  return eta.render(frame.console === undefined ? '@frame' : '@console-frame', {
    ...shared,
    page: template,
    // Screen readers read the title first when a form is shown again with an error (WCAG technique G199).
    heading: own?.sign_in_heading ?? title,
    title: frame.error === undefined ? title : say('common.error.title', { title }),
    wait: minutes(frame.retryAfterSecs ?? 0),
    body,
    mark: MARK,
    monogram: branding === null ? null : monogramOf(branding),
    font: PRELOADED_FONT,
    style: STYLE_PATH,
    scripts: [
      ...(frame.scripted === true ? [PASSKEY_SCRIPT] : []),
      ...(CONTROLS.test(body) ? [CONTROLS_SCRIPT] : []),
    ],
    brand: color === null ? null : `${BRAND_PATH}/${color.slice(1)}`,
  })
}

/** The frame of the documentation: title, stylesheet and navigation. */
type DocsFrame = {
  readonly title: string
  /** Path of the same page as Markdown. Null: none. */
  readonly markdown: string | null
  /** Path of its stylesheet, besides the hosted pages' stylesheet. */
  readonly style: string
  readonly groups: readonly {
    readonly title: string
    readonly links: readonly {
      readonly path: string
      readonly title: string
      readonly here: boolean
    }[]
  }[]
}

/** Renders a page of the documentation, which is in English. */
export function renderDocsPage(
  template: 'docs-page' | 'docs-search',
  frame: DocsFrame,
  content: Readonly<Record<string, unknown>>,
): string {
  return eta.render('@docs-frame', {
    ...frame,
    page: template,
    words: content['words'] ?? '',
    body: eta.render(`@${template}`, content),
    base: STYLE_PATH,
    font: PRELOADED_FONT,
    mark: MARK,
    script: CONTROLS_SCRIPT,
  })
}
