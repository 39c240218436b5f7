/** Icons of the pages: our own, drawn on a grid of 24 with round strokes. They are decoration, so they have no name. */

const ICONS = {
  agent: 'M5 9.5h14v9H5zM12 9.5V6M9.5 14h.01M14.5 14h.01M2.5 13v2.5M21.5 13v2.5M12 4.5h.01',
  alert: 'M12 3.5 21.5 20h-19zM12 10v4.5M12 17.2h.01',
  app: 'M4 4h6.5v6.5H4zM13.5 4H20v6.5h-6.5zM4 13.5h6.5V20H4zM13.5 13.5H20V20h-6.5z',
  arrow: 'M5 12h14M13 6l6 6-6 6',
  building: 'M5 20.5V4h9v16.5M14 9.5h5v11M3 20.5h18M8 8h3M8 12h3M8 16h3',
  card: 'M3 6h18v12.5H3zM3 10h18M6.5 15H10',
  chart: 'M4 20h16M7 16.5V11M12 16.5V5M17 16.5V8.5',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  clock: 'M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM12 7.5V12l3 2',
  code: 'M8.5 7l-5 5 5 5M15.5 7l5 5-5 5',
  copy: 'M9 9h11v11H9zM6 15H4V4h11v2',
  door: 'M14 4H5v16h9M10.5 12H21M17 8l4 4-4 4',
  download: 'M12 4v11M7.5 10.5 12 15l4.5-4.5M4.5 20h15',
  edit: 'M4 20l1-4.5L16 4.5l3.5 3.5L8.5 19zM13.5 7l3.5 3.5',
  eye: 'M2.5 12s3.5-6.5 9.5-6.5 9.5 6.5 9.5 6.5-3.5 6.5-9.5 6.5S2.5 12 2.5 12zM12 9.25a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5z',
  'eye-off':
    'M4 4l16 16M9.9 5.75A9 9 0 0 1 12 5.5c6 0 9.5 6.5 9.5 6.5a16 16 0 0 1-2.9 3.6M6.4 7.4A15.5 15.5 0 0 0 2.5 12s3.5 6.5 9.5 6.5a9 9 0 0 0 4.2-1M10.2 10.2a2.75 2.75 0 0 0 3.7 3.7',
  globe:
    'M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM3.5 12h17M12 3.5c2.5 2.5 3.5 5.5 3.5 8.5s-1 6-3.5 8.5c-2.5-2.5-3.5-5.5-3.5-8.5s1-6 3.5-8.5z',
  hook: 'M9.5 10.5a4 4 0 1 1 5-1.5l3 5.5M6.5 12.5a4 4 0 1 0 4.5 5.5h6M17.5 14.5a3.5 3.5 0 1 1-1.5 6.5M12 7.5l-4 8',
  key: 'M8 11.5a4.25 4.25 0 1 1 0 8.5 4.25 4.25 0 0 1 0-8.5zM11 12.7 19.5 4M16 7.5l3 3',
  link: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1.3 1.3M14 10a4 4 0 0 0-6-.4l-3 3A4 4 0 0 0 10.7 18.3l1.3-1.3',
  list: 'M8.5 6h12M8.5 12h12M8.5 18h12M4 6h.01M4 12h.01M4 18h.01',
  lock: 'M5 11h14v9.5H5zM8 11V8a4 4 0 0 1 8 0v3M12 14.75v2',
  mail: 'M3 5.5h18v13.5H3zM3.5 7l8.5 6 8.5-6',
  passkey:
    'M9.5 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM2.5 20a7 7 0 0 1 10.5-6M17.5 11.5a3 3 0 0 1 1.25 5.7V22l-1.5-1.3V17.2a3 3 0 0 1 .25-5.7z',
  phone: 'M7 2.5h10v19H7zM11 18.5h2',
  pin: 'M12 21s-7-6-7-11.5a7 7 0 0 1 14 0C19 15 12 21 12 21zM12 7a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z',
  plus: 'M12 5v14M5 12h14',
  print: 'M7 8.5V3.5h10v5M7 17H3.5V8.5h17V17H17M7 14h10v6.5H7z',
  refresh: 'M19.5 12a7.5 7.5 0 1 1-2.3-5.4L20 9.2M20 4.5v4.7h-4.7',
  screen: 'M3 4.5h18v12H3zM8.5 20.5h7M12 16.5v4',
  search: 'M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16 16l4.5 4.5',
  server: 'M4 4h16v7H4zM4 13h16v7H4zM7.5 7.5h.01M7.5 16.5h.01',
  settings:
    'M4 7h9M17.5 7H20M4 17h2.5M11 17h9M15.25 4.75a2.25 2.25 0 1 1 0 4.5 2.25 2.25 0 0 1 0-4.5zM8.75 14.75a2.25 2.25 0 1 1 0 4.5 2.25 2.25 0 0 1 0-4.5z',
  shield: 'M12 3l8 3v6c0 4.5-3.5 7.7-8 9-4.5-1.3-8-4.5-8-9V6z',
  'shield-check': 'M12 3l8 3v6c0 4.5-3.5 7.7-8 9-4.5-1.3-8-4.5-8-9V6zM8.5 12l2.5 2.5 4.5-5',
  terminal: 'M3 4.5h18v15H3zM6.5 9l3 3-3 3M12.5 15H17',
  user: 'M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM4.5 20.5a7.5 7.5 0 0 1 15 0',
  users:
    'M9 5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7zM2.5 19.5a6.5 6.5 0 0 1 13 0M16 5.3a3.5 3.5 0 0 1 0 6.4M18 14a6.5 6.5 0 0 1 3.5 5.5',
  vault:
    'M3.5 4h17v15h-17zM6.5 19v2M17.5 19v2M12 8.25a3.25 3.25 0 1 1 0 6.5 3.25 3.25 0 0 1 0-6.5zM12 8.25V6.5M12 16.5v-1.75M15.25 11.5H17M7 11.5h1.75',
  x: 'M6 6l12 12M18 6L6 18',
} as const

type IconName = keyof typeof ICONS

/** Icons that point along the text. They are mirrored on right-to-left pages. */
const TURNING: ReadonlySet<string> = new Set(['arrow', 'door'])

const rendered = new Map(
  Object.entries(ICONS).map(([name, path]) => [
    name,
    `<svg class="icon${TURNING.has(name) ? ' turns' : ''}" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`,
  ]),
)

/** HTML of an icon. */
export const icon = (name: IconName): string => rendered.get(name)!

const AREAS: Readonly<Record<string, IconName>> = {
  openid: 'user',
  profile: 'user',
  email: 'mail',
  phone: 'phone',
  address: 'building',
  offline_access: 'refresh',
  org: 'building',
  applications: 'app',
  users: 'users',
  webhooks: 'hook',
  vault: 'vault',
  agents: 'agent',
  delegations: 'agent',
  tenant: 'building',
  commerce: 'card',
  audit: 'list',
  tokens: 'key',
  credentials: 'shield-check',
  metrics: 'chart',
  signing_keys: 'key',
  deployment: 'server',
}

/** HTML of the icon of a scope, by its area. */
export const scopeIcon = (scope: string): string => icon(AREAS[scope.split(':')[0]!] ?? 'check')

/** Our mark, a keyhole: the same shape as the icon of the site. */
export const MARK =
  '<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8"/>' +
  '<path d="M16 7a5.5 5.5 0 0 0-2.5 10.4l-2.25 8.1h9.5L18.5 17.4A5.5 5.5 0 0 0 16 7z"/></svg>'
