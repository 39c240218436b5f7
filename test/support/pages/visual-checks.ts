/** Checks a page: accessibility, target sizes, and optionally a screenshot. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { violations } from './chromium.js'

/** TEST_SCREENSHOTS names a folder for pictures of every page. */
const pictures = process.env['TEST_SCREENSHOTS']

/** Runs in the page: heights of interactive elements below 44 pixels. The target of a check box is its label. */
const SMALL_TARGETS = `
  [...document.querySelectorAll('button, a.button, select, textarea, input:not([type=hidden], [hidden])')]
    .filter((element) => element.checkVisibility())
    .map((element) => (element.matches('[type=checkbox], [type=radio]') && element.closest('label')) || element)
    .map((element) => element.getBoundingClientRect().height)
    .filter((height) => height < 44)`

/** Runs in the page: buttons with the same accessible name. */
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

/** Runs in the page: password forms without a username for password managers. */
const UNOWNED_PASSWORDS = `
  [...document.querySelectorAll('form:has([type=password])')]
    .filter((form) => !form.querySelector('[autocomplete^=username]')?.value && !form.querySelector('#email'))
    .map((form) => form.action)`

export async function looksRight(t: ExecutionContext, page: Page, name: string): Promise<void> {
  t.deepEqual(await violations(page), [], name)
  const small = await page.evaluate<number[]>(SMALL_TARGETS)
  t.deepEqual(small, [], `${name}: targets are 44 pixels high`)
  t.deepEqual(await page.evaluate<string[]>(UNOWNED_PASSWORDS), [], `${name}: whose password`)
  t.deepEqual(await page.evaluate<string[]>(ALIKE), [], `${name}: buttons that sound alike`)
  if (pictures === undefined) return
  mkdirSync(pictures, { recursive: true })
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
}
