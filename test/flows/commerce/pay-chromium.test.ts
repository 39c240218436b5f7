/**
 * The payment page in a real browser: by keyboard, in light and dark, with accessibility checks.
 */
import { createServer } from 'node:http'
import type { ExecutionContext } from 'ava'
import { openChromium } from '../../support/pages/chromium.js'
import { looksRight } from '../../support/pages/visual-checks.js'
import { testWithProgram } from '../../support/service/programs.js'
import { sharedService } from '../../support/service.js'
import { openShop } from '../../support/commerce/shop.js'
import { IS_LONG } from '../../support/runs.js'

async function journey(
  t: ExecutionContext,
  path: string,
  colorScheme: 'light' | 'dark',
  locale: string,
): Promise<void> {
  t.timeout(180_000)
  const running = await sharedService('commerce')
  const shop = await openShop(running)
  const merchant = createServer((_request, response) => response.end('thank you'))
  await new Promise<void>((resolve) => merchant.listen(0, '127.0.0.1', resolve))
  const { port } = merchant.address() as { port: number }
  const window = await openChromium(path, { colorScheme, locale })
  t.teardown(async () => {
    await window.close()
    merchant.close()
    await shop.api.close()
    await running.end()
  })
  const { page, complaints } = window
  const picture = (name: string) => looksRight(t, page, `${name}-${colorScheme}`)

  const thanks = `http://127.0.0.1:${port}/thanks`
  const first = await shop.checkout({ success_url: thanks, cancel_url: thanks, quantity: 2 })
  await page.goto(String(first['checkout_url']))
  await picture('pay')
  t.is(await page.getAttribute('html', 'lang'), locale)
  await page.fill('#customer_email', 'a@b')
  await page.focus('button[value=succeed]')
  await page.keyboard.press('Enter')
  await page.waitForSelector('#error-summary')
  await picture('pay-wrong')
  await page.fill('#customer_email', 'ada@example.com')
  await page.focus('button[value=succeed]')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${thanks}?charge_id=${String(first['charge_id'])}`)
  t.is((await shop.charge(first['charge_id']))['status'], 'succeeded')
  await page.goto(String(first['checkout_url']))
  await page.waitForSelector('[data-state=succeeded]')
  await picture('paid')

  const second = await shop.checkout()
  await page.goto(String(second['checkout_url']))
  await page.click('button[value=decline]')
  await page.waitForSelector('[data-state=failed]')
  await picture('declined')

  const link = await shop.make('payment-links', { price_id: shop.priceId, quantity: 2 })
  await page.goto(String(link['url']))
  await picture('pay-link')
  await page.focus('button[type=submit]')
  await page.keyboard.press('Enter')
  await page.waitForSelector('button[value=succeed]')
  // Chromium also logs the 400 response to the invalid address.
  const refused = complaints.filter((words) => !words.includes('a status of 400'))
  t.deepEqual(refused, [], 'nothing was refused by the content security policy')
}

testWithProgram('chromium', 'a buyer pays in a browser: light, English', (t, path) =>
  journey(t, path, 'light', 'en'),
)
if (IS_LONG) {
  testWithProgram('chromium', 'a buyer pays in a browser: dark, German', (t, path) =>
    journey(t, path, 'dark', 'de'),
  )
}
