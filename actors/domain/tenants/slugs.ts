/** Slugs of organizations and tenants: `[a-z0-9-]{3,63}`, usable as a host label. */

const SLUG = /^[a-z0-9-]{3,63}$/

/** Whether a text can be a slug at all; what cannot is not looked for. */
export function isSlug(text: string): boolean {
  return SLUG.test(text)
}

export const CONTROL_PLANE_SLUG = 'control-plane'

const LENGTH_MIN = 3
const LENGTH_MAX = 63
/** Room for `-` and the eight characters that make a taken slug unique. */
const STEM_LENGTH_MAX = LENGTH_MAX - 9

/** Names that would shadow an address of the service itself under `{slug}.{base_domain}`. */
const RESERVED_SLUGS = new Set([
  CONTROL_PLANE_SLUG,
  'admin',
  'api',
  'app',
  'auth',
  'cdn',
  'dashboard',
  'docs',
  'egress',
  'health',
  'identity',
  'login',
  'mail',
  'metrics',
  'status',
  'svc',
  'www',
])

/**
 * Hyphens in the third and fourth place mark a name in another script (RFC 5891 section 4.2.3.1):
 * browsers would show `xn--…` as one that looks like somebody else's.
 */
const MARKED = /^..--/

/** Whether a slug may be given to somebody; whether it is taken only the database knows. */
export function slugAllowed(slug: string): boolean {
  return (
    slug.length >= LENGTH_MIN &&
    slug.length <= LENGTH_MAX &&
    /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(slug) &&
    !MARKED.test(slug) &&
    !RESERVED_SLUGS.has(slug)
  )
}

/**
 * The slugs to try for a name, best first: the name in ASCII letters and digits joined by hyphens,
 * then the same made unique. `suffix` follows the name, e.g. `-sandbox`.
 */
export function slugCandidates(
  name: string,
  { suffix = '', unique }: { suffix?: string; unique: () => string },
): string[] {
  const stem = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, STEM_LENGTH_MAX - suffix.length)
    .replace(/-+$/, '')
  const base = stem === '' ? `workspace${suffix}` : `${stem}${suffix}`
  const candidates = [base, `${base}-${unique()}`, `${base}-${unique()}`, `${base}-${unique()}`]
  return candidates.filter(slugAllowed)
}
