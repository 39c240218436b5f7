/** Whether a page is fit to be looked at and used: no barriers, targets large enough, a picture of it. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { violations } from './chromium.js'

/** TEST_SCREENSHOTS names a folder for pictures of every page. */
const pictures = process.env['TEST_SCREENSHOTS']

/** Run in the page: heights of what can be pressed or filled in, below 44 pixels. */
const SMALL_TARGETS = `
  [...document.querySelectorAll('button, a.button, input:not([type=hidden], [hidden])')]
    .map((element) => element.getBoundingClientRect().height)
    .filter((height) => height < 44)`

/** Run in the page: what those hear who go from button to button, where two of them sound alike. */
const ALIKE = `
  [...document.querySelectorAll('button')]
    .filter((button) => button.checkVisibility())
    .map((button) => {
      const ids = button.getAttribute('aria-describedby')?.split(' ') ?? []
      return [button, ...ids.map((id) => document.getElementById(id))]
        .map((one) => one?.textContent.trim() ?? '')
        .join(' ')
    })
    .filter((name, at, all) => all.indexOf(name) < at)`

/** Run in the page: forms of whose password managers of passwords have to guess the owner. */
const NOBODYS = `
  [...document.querySelectorAll('form:has([type=password])')]
    .filter((form) => !form.querySelector('[autocomplete^=username]')?.value && !form.querySelector('#email'))
    .map((form) => form.action)`

export async function looksRight(t: ExecutionContext, page: Page, name: string): Promise<void> {
  t.deepEqual(await violations(page), [], name)
  const small = await page.evaluate<number[]>(SMALL_TARGETS)
  t.deepEqual(small, [], `${name}: targets are 44 pixels high`)
  t.deepEqual(await page.evaluate<string[]>(NOBODYS), [], `${name}: whose password`)
  t.deepEqual(await page.evaluate<string[]>(ALIKE), [], `${name}: buttons that sound alike`)
  if (pictures === undefined) return
  mkdirSync(pictures, { recursive: true })
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
}
