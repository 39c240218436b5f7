/** Slugs of organizations and tenants: `[a-z0-9-]{3,63}`, usable as a host label. */

const SLUG = /^[a-z0-9-]{3,63}$/

/** True for a syntactically valid slug. */
export function isSlug(text: string): boolean {
  return SLUG.test(text)
}

export const CONTROL_PLANE_SLUG = 'control-plane'

const LENGTH_MIN = 3
const LENGTH_MAX = 63
/** Leaves room for `-` and eight characters that make a slug unique. */
const STEM_LENGTH_MAX = LENGTH_MAX - 9

/** Names that would conflict with hosts of the service under `{slug}.{base_domain}`. */
const RESERVED_SLUGS = new Set([
  CONTROL_PLANE_SLUG,
  'account',
  'admin',
  'api',
  'app',
  'auth',
  'cdn',
  'connect',
  'console',
  'constructor',
  'dashboard',
  'docs',
  'egress',
  'health',
  'identity',
  'localhost',
  'login',
  'mail',
  'mcp',
  'metrics',
  'pay',
  'status',
  'svc',
  'www',
])

/**
 * Hyphens in positions 3 and 4 mark an A-label (RFC 5891 section 4.2.3.1). Browsers would display `xn--…` as a Unicode
 * name, which could imitate another one.
 */
const MARKED = /^..--/

/** True if a slug may be assigned. Uniqueness is checked by the database. */
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
 * Candidate slugs for a name, best first: its ASCII letters and digits joined by hyphens, then the same with a unique
 * ending. `suffix` follows the name, such as `-sandbox`.
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
