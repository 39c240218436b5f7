/** Chromium, if it is installed, with axe for accessibility checks. */
import { readFileSync } from 'node:fs'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { countStart } from '../service/started.js'
import { toolRequire } from '../tools.js'

const AXE = readFileSync(toolRequire.resolve('axe-core/axe.min.js'), 'utf8')

export type Window = {
  readonly context: BrowserContext
  readonly page: Page
  /** Errors of the browser, including CSP violations. */
  readonly complaints: string[]
  close(): Promise<void>
}

export async function openChromium(
  path: string,
  options: {
    readonly colorScheme?: 'light' | 'dark'
    readonly locale?: string
    readonly javaScriptEnabled?: boolean
  } = {},
): Promise<Window> {
  countStart('browser')
  const browser = await chromium.launch({
    executablePath: path,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
  const context = await browser.newContext({ ...options, ignoreHTTPSErrors: true })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  return { context, page, complaints, close: () => browser.close() }
}

type Violation = { readonly id: string; readonly help: string; readonly nodes: { html: string }[] }

/** WCAG 2.2 A and AA violations that axe finds in a page. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: Violation[] }> }
    }
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
    return (await axe.run({ runOnly: tags })).violations
  })
  return found.map(({ id, help, nodes }) => `${id}: ${help} ${nodes[0]?.html ?? ''}`)
}
