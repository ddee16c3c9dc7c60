"""What agents of the demo do, in English and Chinese; ``{n}`` is a number that differs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scenario:
    agent: str
    model: str
    titles: tuple[str, ...]
    system: str
    asks: tuple[str, ...]
    tool: str
    arguments: str
    result: str
    answers: tuple[str, ...]
    waits_for: str
    goal: str
    plan: tuple[str, ...]
    users: tuple[str, ...]


SCENARIOS = (
    Scenario(
        agent="support-agent",
        model="gpt-5.1-mini",
        titles=("Refund for order {n}", "Parcel {n} never arrived", "Wrong size in order {n}"),
        system="You help customers of the shop. Never promise a refund before you have checked it.",
        asks=(
            "Hi, order {n} arrived damaged. Can I have my money back?",
            "Where is my parcel {n}? It should have been here on Monday.",
            "Thanks. And can you change the address of order {n}?",
        ),
        tool="search_orders",
        arguments='{"order": {n}, "include": ["shipments", "payments"]}',
        result='{"order": {n}, "status": "delivered", "total": "59.90", "currency": "EUR"}',
        answers=(
            "I have found order **{n}** and started the refund of 59.90 EUR. It takes 3 to 5 days.",
            (
                "Order {n} was handed to the carrier:\n\n| Step | Day |\n|---|---|\n"
                "| Packed | Mon |\n| Shipped | Tue |\n\nIt should reach you tomorrow."
            ),
        ),
        waits_for="approval of a refund above 50 EUR",
        goal="Settle what the customer asks about order {n}",
        plan=("Find the order", "Check what the rules allow", "Answer the customer"),
        users=("maria.santos@example.org", "u-1029", "u-5521", "j.okafor@example.com"),
    ),
    Scenario(
        agent="code-agent",
        model="claude-sonnet-4-5",
        titles=(
            "Fix the flaky test in job {n}",
            "Find the memory leak in worker {n}",
            "Move billing to PostgreSQL (ticket {n})",
        ),
        system="You are a careful engineer. Run the tests before you say that something works.",
        asks=(
            "Build {n} fails now and then in test_retry. Please find out why.",
            "Go on, and open a pull request for ticket {n} when the tests are green.",
        ),
        tool="run_tests",
        arguments='{"target": "tests/test_retry.py", "build": {n}, "verbose": true}',
        result='{"passed": 41, "failed": 1, "build": {n}, "log": "E  assert 2 == 3 (attempts)"}',
        answers=(
            (
                "The test depends on the clock. I froze it:\n\n```python\nwith freeze(NOON):\n"
                "    retry(job)\n```\n\nAll 42 tests of build {n} pass."
            ),
            "Ticket {n} is done; the pull request waits for a review.",
        ),
        waits_for="review of the pull request",
        goal="Make build {n} pass every time",
        plan=("Reproduce", "Find the cause", "Mend it", "Run the tests"),
        users=("u-7", "dev-lin", "dev-anna"),
    ),
    Scenario(
        agent="analyst",
        model="gpt-5.1",
        titles=("Revenue by region, week {n}", "Why did sign-ups drop in cohort {n}?"),
        system="You answer with figures, and say where they come from.",
        asks=("How did revenue develop in week {n}, by region?", "Compare that with cohort {n}."),
        tool="query_warehouse",
        arguments='{"sql": "SELECT region, sum(revenue) FROM sales WHERE week = {n} GROUP BY 1"}',
        result='{"rows": [["EMEA", 418200], ["APAC", 388910], ["AMER", 512077]], "week": {n}}',
        answers=(
            (
                "| Region | Revenue |\n|---|---:|\n| AMER | 512,077 |\n| EMEA | 418,200 |\n"
                "| APAC | 388,910 |\n\nWeek {n} was the best of the quarter."
            ),
        ),
        waits_for="access to the sales tables",
        goal="Explain the figures of week {n}",
        plan=("Query the warehouse", "Compare with the week before", "Write it up"),
        users=("finance", "ceo-office"),
    ),
    Scenario(
        agent="客服助手",
        model="qwen3-max",
        titles=("订单 {n} 退款申请", "包裹 {n} 在运输途中损坏", "会员 {n} 无法登录"),
        system="你是商城的客服助手, 先核对订单, 再答复客户。",
        asks=(
            "你好, 订单 {n} 收到时已经破损, 请问可以退款吗?",
            "我的包裹 {n} 三天没有更新物流了, 麻烦查一下。",
        ),
        tool="查询订单",
        arguments='{"订单号": {n}, "包含": ["物流", "支付"]}',
        result='{"订单号": {n}, "状态": "已签收", "金额": "199.00", "币种": "CNY"}',
        answers=(
            "您好, 订单 **{n}** 符合退款条件, 199.00 元将在 1 至 3 个工作日内原路退回。",
            "包裹 {n} 已到达杭州转运中心, 预计明天送达。",
        ),
        waits_for="主管批准退款",
        goal="处理客户关于订单 {n} 的请求",
        plan=("查询订单", "核对退款规则", "答复客户"),
        users=("王小明", "李娜", "用户-88"),
    ),
    Scenario(
        agent="运维助手",
        model="deepseek-v3.2",
        titles=("修复无法启动的项目 {n}", "排查节点 {n} 的磁盘告警"),
        system="你是运维工程师, 任何改动之前先说明影响。",
        asks=("节点 {n} 报磁盘空间不足, 请处理。", "项目 {n} 部署后起不来, 帮我看看日志。"),
        tool="执行命令",
        arguments='{"命令": "df -h && journalctl -n 50", "节点": {n}}',
        result='{"退出码": 0, "节点": {n}, "输出": "/dev/sda1 96% 已用"}',
        answers=(
            "节点 {n} 的日志占满了磁盘, 已清理 38 GB 并设置轮转:\n\n```bash\nlogrotate -f\n```",
            "项目 {n} 缺少环境变量 `DATABASE_URL`, 补上后已正常启动。",
        ),
        waits_for="值班人员确认重启",
        goal="让节点 {n} 恢复正常",
        plan=("查看日志", "定位原因", "修复并验证"),
        users=("张伟", "ops-oncall"),
    ),
)

ERRORS = (
    ("tool_error", "The tool answered with status 503 three times."),
    ("timeout", "The model did not answer within 120 seconds."),
    ("rate_limit", "Rate limit reached: 60 requests a minute."),
    ("context_length", "模型上下文超出长度限制。"),
    ("tool_error", "数据库连接被拒绝, 请稍后重试。"),
)
