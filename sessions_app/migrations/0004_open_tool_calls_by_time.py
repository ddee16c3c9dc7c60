from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0003_operators_settle_tool_calls'),
    ]

    operations = [
        migrations.AddConstraint(
            model_name='toolcall',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('status__in', ['PENDING', 'RUNNING'])), models.Q(models.Q(('status__in', ['PENDING', 'RUNNING']), _negated=True), ('finished_at__isnull', False)), _connector='OR'), name='tool_call_status_has_its_time'),
        ),
        migrations.RemoveIndex(
            model_name='toolcall',
            name='tool_call_open',
        ),
        migrations.AddIndex(
            model_name='toolcall',
            index=models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['session', 'id'], name='tool_call_open'),
        ),
    ]
