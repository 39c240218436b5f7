/** The sequence diagrams of the guides: SVG that follows the colour scheme of the reader. `write-flow-pictures.ts` writes them. */

type Flow = {
  readonly about: string
  /** From left to right. */
  readonly parties: readonly string[]
  /** Arrows between parties by their index. The same index twice: what a party does. */
  readonly steps: readonly (readonly [from: number, to: number, words: string])[]
}

/** By the name of the file below docs/pictures. */
export const FLOWS: Readonly<Record<string, Flow>> = {
  'flow-authorization-code': {
    about: 'The authorization code flow between browser, application and svc',
    parties: ['Browser', 'Application', 'svc'],
    steps: [
      [0, 1, 'sign in'],
      [1, 0, 'redirect: /oauth/authorize with code_challenge'],
      [0, 2, 'sign-in and consent on the pages of svc'],
      [2, 0, 'redirect to the application with the code'],
      [0, 1, 'the code'],
      [1, 2, 'POST /oauth/token: code, code_verifier'],
      [2, 1, 'access, refresh and ID token'],
    ],
  },
  'flow-device': {
    about: 'The device flow between a person, a device and svc',
    parties: ['Person', 'Device', 'svc'],
    steps: [
      [1, 2, 'POST /oauth/device/code'],
      [2, 1, 'device_code and user_code'],
      [1, 0, 'shows the address and the code'],
      [0, 2, 'signs in elsewhere, compares the code, approves'],
      [1, 2, 'POST /oauth/token, each interval'],
      [2, 1, 'tokens'],
    ],
  },
  'flow-delegation': {
    about: 'A delegation between a person, an agent and svc',
    parties: ['Person', 'Agent', 'svc'],
    steps: [
      [1, 2, 'POST …/delegations/device: scope'],
      [2, 1, 'user_code and device_code'],
      [1, 0, 'gives the link'],
      [0, 2, 'sees who asks for what, and approves'],
      [1, 2, 'POST …/device/token, each interval'],
      [2, 1, 'token: sub is the person, act the agent'],
    ],
  },
  'flow-egress': {
    about: 'A call through the egress proxy between agent, svc and upstream',
    parties: ['Agent', 'svc', 'Upstream'],
    steps: [
      [0, 1, 'POST /v1/proxy/body: token, credential, URL'],
      [1, 1, 'checks grant, host and budget'],
      [1, 2, 'the call, with the secret'],
      [2, 1, 'the answer'],
      [1, 0, 'the answer, without the secret'],
    ],
  },
}

const WIDTH = 760
const TOP = 64
const STEP = 48
const MARGIN = 90

type Colours = Readonly<Record<'paper' | 'ink' | 'line' | 'brand', string>>

/** Some viewers know no custom properties. */
const coloursOf = ({ paper, ink, line, brand }: Colours) =>
  `text{fill:${ink}}rect{fill:${paper};stroke:${line}}.back{stroke:none}.over{stroke:${paper}}` +
  `.line{stroke:${line}}.arrow{stroke:${brand}}#head path{fill:${brand}}`

/** The text of the file. */
export function flowPicture({ about, parties, steps }: Flow): string {
  const x = (party: number) => MARGIN + (party * (WIDTH - 2 * MARGIN)) / (parties.length - 1)
  const height = TOP + steps.length * STEP + 16
  const heads = parties.map(
    (name, at) =>
      `<rect x="${x(at) - 70}" y="8" width="140" height="36" rx="6"/><text x="${x(at)}" y="31" class="who">${name}</text>` +
      `<path d="M${x(at)} 44V${height - 8}" class="line"/>`,
  )
  const arrows = steps.map(([from, to, words], at) => {
    const y = TOP + at * STEP + 28
    const middle = (x(from) + x(to)) / 2
    if (from === to)
      return `<rect x="${middle - 130}" y="${y - 20}" width="260" height="30" rx="6"/><text x="${middle}" y="${y}">${words}</text>`
    const end = x(to) + (from < to ? -2 : 2)
    return `<text x="${middle}" y="${y - 8}" class="over">${words}</text><path d="M${x(from)} ${y}H${end}" class="arrow" marker-end="url(#head)"/>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${about}</title>
<style>
text{font:13px system-ui,sans-serif;text-anchor:middle}
.who{font-weight:600;font-size:14px}
.over{stroke-width:5px;paint-order:stroke}
.line{stroke-dasharray:4 4}
.arrow{stroke-width:1.5;fill:none}
${coloursOf({ paper: '#fff', ink: '#14171f', line: '#7d8694', brand: '#1f4fd1' })}
@media(prefers-color-scheme:dark){
${coloursOf({ paper: '#15181f', ink: '#eef0f4', line: '#7f899a', brand: '#9db0ff' })}
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
<rect width="${WIDTH}" height="${height}" rx="8" class="back"/>
${[...heads, ...arrows].join('\n')}
</svg>
`
}
