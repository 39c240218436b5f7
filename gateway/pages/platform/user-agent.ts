/** A readable short form of a User-Agent: enough to recognize one's own browsers, no more. */

const BROWSERS: readonly [pattern: RegExp, name: string][] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Headless)?(?:Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]
const SYSTEMS: readonly [pattern: RegExp, name: string][] = [
  [/\bAndroid\b/, 'Android'],
  [/\b(?:iPhone|iPad|iPod)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]
const UNKNOWN_LENGTH_MAX = 60

/** `Firefox, Linux`; an unknown User-Agent is shown as sent, truncated. */
export function browserName(userAgent: string): string {
  const name = (table: typeof BROWSERS) => table.find(([pattern]) => pattern.test(userAgent))?.[1]
  const known = [name(BROWSERS), name(SYSTEMS)].filter((part) => part !== undefined)
  return known.length === 0 ? userAgent.slice(0, UNKNOWN_LENGTH_MAX) : known.join(', ')
}
