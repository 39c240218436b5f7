/** Texts of the start page, of sign-up, and of the mails of a development service. */
import type { firstSteps as english } from '../en/first-steps.js'

export const firstSteps: Readonly<Record<keyof typeof english, string>> = {
  'home.for':
    'アカウントを表示するにはログインしてください。アプリケーションやエージェントを接続する方法もご覧いただけます。',
  'home.workspace': 'ワークスペースのスラッグ',
  'home.console': 'コンソールを開く',
  'home.mail': 'この開発用サービスのメール',
  'home.agents': 'エージェントの方はこちら',
  'home.overview': '言語モデル向けの概要',
  'home.mcp': 'MCP サーバー (認証情報は不要)',

  'error.home': 'スタートページへ',

  'register.title': 'アカウントの作成',
  'register.lead':
    '{tenant} のアカウントを作成します。アドレスを確認するためのリンクをメールでお送りします。',
  'register.submit': 'リンクを送信',
  'register.login': 'アカウントをお持ちの場合はログイン',
  'register.offer': 'アカウントをお持ちでない場合は作成',
  'register.sent': '{email} にメールをお送りしました。メールのリンクを開いて続行してください。',
  'register.sent.hint':
    '1 分経ってもメールが届かない場合は、迷惑メールフォルダとアドレスを確認してください。',
  'register.again': '別のアドレスを使用',
  'register.confirm.title': 'アカウント作成の完了',
  'register.confirm.lead': 'アドレスは {email} です。{tenant} のパスワードを設定してください。',
  'register.confirm.known':
    '{email} のアカウントをすでにお持ちです。{tenant} に参加してから、いつもの方法でログインしてください。',
  'register.confirm.submit': 'アカウントを作成',
  'register.confirm.join': '{tenant} に参加',
  'register.off.title': '新規登録は受け付けていません',
  'register.off':
    '{tenant} では、ここからの新規登録を受け付けていません。管理者に招待を依頼してください。',
  'register.gone.title': 'リンクは無効になりました',
  'register.gone':
    'このリンクは使用済みか、有効期限が切れています。もう一度登録すると、新しいリンクが届きます。',
  'register.start': 'もう一度登録',

  'dev_mail.title': '開発用メール',
  'dev_mail.lead':
    'このサービスが送信した最新のメールです。メモリに保存されています。本番環境にこのページはありません。',
  'dev_mail.none':
    'メールはまだありません。登録するかコードをリクエストしてから、再読み込みしてください。',
  'dev_mail.hint':
    'サンドボックスからメールを送れるのは、you@example.com などのアドレス、検証済みドメイン、所有者に限られます。',
  'dev_mail.reload': '再読み込み',
  'dev_mail.message.title': 'メール',
  'dev_mail.subject': '件名',
  'dev_mail.to': '宛先',
  'dev_mail.sent': '送信日時',
  'dev_mail.open': 'リンクを開く',
  'dev_mail.text': 'テキスト形式',
  'dev_mail.html': 'HTML 形式',
  'dev_mail.back': 'すべてのメール',
}
