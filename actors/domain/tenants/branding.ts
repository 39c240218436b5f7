/** Branding of hosted pages, from `branding` in the tenant's settings. Invalid values are ignored. */
import { httpsUrl, PAGE } from '../entities/https-url.js'
import type { TenantId } from '../ids.js'
import { type Locale, LOCALES } from '../i18n/locales.js'

/** The branding of a tenant. */
export type PageTenant = {
  readonly id: TenantId
  readonly name: string
  /** `#rrggbb`, lower case, or null for the default. */
  readonly color: string | null
  /** The uploaded image (a path of the service or an https URL), otherwise the `data:` URI of the settings, or null. */
  readonly logo: string | null
  /** A path of the service or an https URL, or null. */
  readonly favicon: string | null
  /** The language for browsers that request no supported one. Null: English. */
  readonly locale: Locale | null
  /** An address or page for support, or null. */
  readonly supportContact: string | null
  /** Links at the end of each page. */
  readonly links: readonly PageLink[]
  /** Texts of the tenant on its pages, by language. */
  readonly texts: PageTexts
}

/** Plain text. An absent one is ours. */
export type PageTexts = {
  readonly [L in Locale]?: {
    readonly sign_in_heading?: string | undefined
    readonly sign_in_note?: string | undefined
  }
}

type PageLink = { readonly label: string; readonly url: string }

const LOGO_LENGTH_MAX = 96 * 1024

export function brandingOf(
  id: string,
  name: string,
  settings: Readonly<Record<string, unknown>>,
): PageTenant {
  const branding = memberOf(settings, 'branding')
  const shown = memberText(branding, 'name')
  const color = memberText(branding, 'color')?.toLowerCase()
  const logo = memberText(branding, 'logo')
  const locale = LOCALES.find((supported) => supported === memberText(branding, 'locale'))
  return {
    id,
    name: shown === undefined || shown.trim() === '' ? name : shown.slice(0, 120),
    color: color !== undefined && /^#[0-9a-f]{6}$/.test(color) ? color : null,
    logo: assetOf(settings, 'logo') ?? (logo !== undefined && isPicture(logo) ? logo : null),
    favicon: assetOf(settings, 'favicon'),
    locale: locale ?? null,
    supportContact: memberText(settings, 'support_contact') ?? null,
    links: linksOf(memberOf(branding, 'links')),
    texts: textsOf(memberOf(branding, 'texts')),
  }
}

/** The URL of an uploaded image (storage/identity/branding/tenant-assets.ts). */
function assetOf(settings: Readonly<Record<string, unknown>>, kind: string): string | null {
  const url = memberText(memberOf(settings, 'assets'), kind)
  return url !== undefined && /^(?:\/assets\/|https:\/\/)/.test(url) ? url : null
}

export const SIGN_IN_HEADING_CHARS_MAX = 80
export const SIGN_IN_NOTE_CHARS_MAX = 300

function textsOf(texts: unknown): PageTexts {
  const own = LOCALES.flatMap((locale) => {
    const of = memberOf(texts, locale)
    const heading = memberText(of, 'sign_in_heading')?.slice(0, SIGN_IN_HEADING_CHARS_MAX)
    const note = memberText(of, 'sign_in_note')?.slice(0, SIGN_IN_NOTE_CHARS_MAX)
    return heading === undefined && note === undefined
      ? []
      : [[locale, { sign_in_heading: heading, sign_in_note: note }] as const]
  })
  return Object.fromEntries(own)
}

const LINKS_MAX = 5

function linksOf(links: unknown): readonly PageLink[] {
  if (!Array.isArray(links)) return []
  return links.slice(0, LINKS_MAX).flatMap((link) => {
    const [label, url] = [memberText(link, 'label'), memberText(link, 'url')]
    return label !== undefined && url !== undefined && httpsUrl(url, PAGE) !== null
      ? [{ label: label.slice(0, 40), url }]
      : []
  })
}

function isPicture(uri: string): boolean {
  return (
    uri.length <= LOGO_LENGTH_MAX &&
    /^data:image\/(?:png|jpeg|webp);base64,[A-Za-z0-9+/]+=*$/.test(uri)
  )
}

/** Session lifetimes of the tenant, otherwise of the deployment. */
export function lifetimesOf(
  settings: Readonly<Record<string, unknown>>,
  defaults: { readonly idle_secs: number; readonly absolute_secs: number },
): { readonly idleSecs: number; readonly absoluteSecs: number } {
  const session = memberOf(settings, 'session')
  return {
    idleSecs: memberSecs(session, 'idle_secs') ?? defaults.idle_secs,
    absoluteSecs: memberSecs(session, 'absolute_secs') ?? defaults.absolute_secs,
  }
}

/** The tenant's settings for sign-in with providers of the deployment. */
export function socialOf(settings: Readonly<Record<string, unknown>>): {
  readonly enabled: boolean
  readonly provision: boolean
} {
  const social = memberOf(settings, 'social')
  return {
    enabled: memberOf(social, 'enabled') !== false,
    provision: memberOf(social, 'provision') === true,
  }
}

/** Whether the tenant offers sign-up. Null: it does not say. */
export function signUpOf(settings: Readonly<Record<string, unknown>>): boolean | null {
  const enabled = memberOf(memberOf(settings, 'sign_up'), 'enabled')
  return typeof enabled === 'boolean' ? enabled : null
}

/** Whether the tenant has guests. Default: no. */
export function anonymousOf(settings: Readonly<Record<string, unknown>>): boolean {
  return memberOf(memberOf(settings, 'anonymous'), 'enabled') === true
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Record<string, unknown>)[name]
    : undefined
}

function memberText(value: unknown, name: string): string | undefined {
  const member = memberOf(value, name)
  return typeof member === 'string' ? member : undefined
}

const LIFETIME_SECS_MAX = 30 * 86_400

function memberSecs(value: unknown, name: string): number | undefined {
  const member = memberOf(value, name)
  return typeof member === 'number' &&
    Number.isInteger(member) &&
    member > 0 &&
    member <= LIFETIME_SECS_MAX
    ? member
    : undefined
}
